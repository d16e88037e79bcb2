"""What was spent: composition here, a party's ledger in `ledger`, figures for people in `calculator`. It adds no noise."""
