"""What was spent: ledger, composition, calibration. It adds no noise itself."""
