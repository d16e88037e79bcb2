"""The masked sum: masks that cancel, and the coordinator opens the total only."""
