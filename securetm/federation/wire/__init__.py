"""The messages between coordinator and party: bytes, their form, and how long each may be."""
