"""Tables in the terminal, and pages. It computes nothing new."""
