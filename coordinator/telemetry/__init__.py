"""Telemetry of clients (KIP-714): the metrics that a client should push, and when it may push them."""
