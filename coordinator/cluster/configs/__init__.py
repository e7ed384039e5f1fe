"""Dynamic configs: the resources that have them, and their rules."""
