"""The experiments of the papers that securetm follows: ours beside theirs, claim by claim."""
