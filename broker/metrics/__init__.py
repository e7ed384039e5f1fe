"""Metrics and health over HTTP, on a port of their own: `odradek.metrics.listener`. Imported only where that is set."""
