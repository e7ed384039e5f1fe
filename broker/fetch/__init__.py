"""Fetch, however its request was parsed: its session, its reads, its wait, and its response.

Source: kafka.server.ReplicaManager.fetchMessages, DelayedFetch, FetchSession.
"""
