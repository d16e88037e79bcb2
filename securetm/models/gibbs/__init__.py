"""Models drawn from: collapsed Gibbs sampling, exact and by proposals."""
