"""Brokers: registered, alive, fenced, and their directories."""
