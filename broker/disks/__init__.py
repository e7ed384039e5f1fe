"""Log directories: opened, locked, cleaned, and taken offline."""
