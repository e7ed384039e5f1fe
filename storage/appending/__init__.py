"""Decides which batches may be appended, and stamps them."""
