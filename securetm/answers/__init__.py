"""A party's answer to a question: its way through the mechanisms, and the sum of bounded rows, block by block."""
