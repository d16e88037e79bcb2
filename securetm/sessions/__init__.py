"""What all aggregations use: identities, signatures, sealed messages and exchanges in waves. Sans-I/O."""
