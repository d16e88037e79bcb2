"""Encrypted sums under one secret key of all parties: BFV and CKKS."""
