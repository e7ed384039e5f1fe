"""Metrics and health over HTTP, on a port of their own: `odradek.metrics.listener`. Imported only if that option is
set.
"""
