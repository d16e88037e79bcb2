"""Topics of each party's own: how a coordinator matches them, and how far two models agree. No secure sum takes part."""
