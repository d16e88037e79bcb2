"""Topic models around networks that other people wrote in torch: their contract, and how they are trained. No kernels."""
