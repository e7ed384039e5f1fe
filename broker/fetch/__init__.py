"""Fetch, whichever way it was read: what it wants, what its partitions give, the wait for it, and how it is written.

Source: kafka.server.ReplicaManager.fetchMessages, DelayedFetch, FetchSession.
"""
