"""A federation to try: its files on one machine, and its six processes."""
