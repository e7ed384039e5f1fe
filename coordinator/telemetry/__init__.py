"""Client telemetry (KIP-714): the metrics that each client should push, and the times when it may push."""
