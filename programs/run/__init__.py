"""The process of a node: its command line, its start and stop, its background jobs."""
