"""Topics of each party's own, and how a coordinator matches them. No secure sum takes part."""
