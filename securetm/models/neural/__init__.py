"""Topic models trained by gradients."""
