"""LDA by collapsed Gibbs sampling, exact or by proposals, and what every model that draws topics shares. No gradients."""
