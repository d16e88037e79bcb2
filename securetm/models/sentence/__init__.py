"""SentenceLDA: all words of a sentence have one topic. It needs documents in reading order, not bare counts."""
