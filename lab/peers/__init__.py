"""What ours is held against: baselines of our own, and other packages in their own environments."""
