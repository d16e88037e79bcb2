"""Commands for whoever looks after a member's machine."""
