"""Scripts that run in the peers' own environment and print one JSON document. They import nothing of securetm."""
