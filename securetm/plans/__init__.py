"""What a run is: profiles, plans, recommendations, and the agreement that every role makes of its own copy."""
