"""Questions that every federation asks beside its model's: about the words of the corpus, and the quality of the model."""
