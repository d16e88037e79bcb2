"""SentenceLDA: one topic a sentence."""
