"""One model for each party, put side by side by the coordinator."""
