"""A corpus on disk that is read block by block, so that memory does not bound it."""
