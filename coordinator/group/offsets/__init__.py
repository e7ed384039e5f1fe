"""What groups have committed."""
