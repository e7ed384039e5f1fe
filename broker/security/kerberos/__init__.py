"""Kerberos tickets: their validation, and the names of their clients."""
