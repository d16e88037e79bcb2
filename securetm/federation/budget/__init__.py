"""A party's budget: what questions cost, its ledgers, and what the others sign of them."""
