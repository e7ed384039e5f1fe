"""What may be appended, and how it is stamped."""
