"""From documents to sparse counts: readers, tokeniser, partitions, synthetic corpora, docstrings. No model."""
