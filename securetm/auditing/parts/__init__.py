"""What attacks are made of: arithmetic on what was seen, and how guesses are judged. Nothing here opens a folder."""
