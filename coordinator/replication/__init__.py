"""Replication, sans-IO: a leader's in-sync replicas and high watermark, and a follower's fetches.

The leader's part is `roles.py`, `isr.py` and `isr_changes.py`; the follower's is `fetcher.py`, `session.py`,
`states.py` and `steps.py`. `truncation.py` compares their logs.
"""
