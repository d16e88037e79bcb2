"""A party: its documents, its answers, and what it needs to join a real federation."""
