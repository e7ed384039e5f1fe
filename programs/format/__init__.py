"""Formats a node's directories, as `kafka-storage format` does."""
