"""The roles of a federation and what passes between them."""
