"""Fetch, however its request was parsed: its sessions, the reads of its partitions, its wait, and its response.

Source: kafka.server.ReplicaManager.fetchMessages, DelayedFetch, FetchSession.
"""
