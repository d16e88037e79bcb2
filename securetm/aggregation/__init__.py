"""What changes who sees a sum. Sans-I/O: bytes in, bytes out."""
