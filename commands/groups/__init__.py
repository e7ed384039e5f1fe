"""Groups of consumers: described, joined, their offsets read and reset."""
