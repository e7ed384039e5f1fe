"""Sockets: listeners, connections, and the bounds of both."""
