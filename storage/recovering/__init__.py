"""What opens a log after a crash, and what cuts it."""
