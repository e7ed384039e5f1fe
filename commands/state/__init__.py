"""The state of a cluster: reads it, finds faults, plans changes and shows it."""
