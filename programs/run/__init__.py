"""The process: its command line, its life, its background jobs."""
