"""Receives the metrics that clients push (KIP-714), checks them, and passes them on."""
