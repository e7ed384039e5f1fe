"""Validates batches to append, and assigns their offsets."""
