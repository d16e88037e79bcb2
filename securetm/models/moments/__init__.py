"""Topics from one noisy sum: which words occur together in documents, and how many documents hold each word."""
