"""One part of each kind, as another package brings it to securetm."""
