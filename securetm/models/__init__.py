"""The topic models in rooms, and beside these what they share. They know neither privacy nor network."""
