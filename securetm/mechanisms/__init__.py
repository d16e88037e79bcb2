"""What changes what is learned from a sum: sampling, clipping, noise. They see no network."""
