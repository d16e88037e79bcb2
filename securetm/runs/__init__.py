"""What a run left in its folder: read, compared, adapted, deleted."""
