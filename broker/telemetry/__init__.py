"""Metrics that clients push (KIP-714): taken, checked, and handed on."""
