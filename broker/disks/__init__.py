"""Log directories: opened, locked, flushed and cleaned."""
