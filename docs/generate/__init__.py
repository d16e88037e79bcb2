"""Makes pages of the site from the tree: folders, errors, Python names, settings. The prose is not here."""
