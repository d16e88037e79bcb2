"""An audit in words: its record in a file, and the report of it in the terminal, as a page and as a text."""
