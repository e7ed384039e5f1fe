"""Log directories: opened, kept, cleaned, and given up."""
