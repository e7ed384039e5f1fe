"""Opens a log after a crash, and truncates it."""
