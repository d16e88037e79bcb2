"""What every aggregation stands on: identities, signatures, sealing, waves of messages. Sans-I/O."""
