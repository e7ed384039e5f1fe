"""Telemetry of clients (KIP-714): which metrics a client is asked for, and when it may push them."""
