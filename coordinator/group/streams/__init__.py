"""Streams groups (KIP-1071): their topology, members and tasks."""
