"""Who clients are: how a connection authenticates, and what it may ask before it has."""
