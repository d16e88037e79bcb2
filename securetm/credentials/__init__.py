"""Long-lived keys of organisations, their certificates, and the signed roster that says who belongs to a federation."""
