"""Topics by non-negative factorisation of word counts, by sums over documents or by gradient steps at the parties."""
