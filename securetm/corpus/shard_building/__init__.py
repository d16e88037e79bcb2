"""Builds a corpus on disk from a source that is read as a stream."""
