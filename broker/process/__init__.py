"""The process: its command line, its life, what it does by itself."""
