"""`odradek log`: shows, verifies and repairs data directories, without a running broker."""
