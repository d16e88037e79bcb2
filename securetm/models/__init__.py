"""The topic models and their quality. They know neither privacy nor network."""
