"""LDA by mean-field updates, which draws nothing."""
