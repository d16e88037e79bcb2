"""Tables and figures of papers and of this project, ours beside theirs."""
