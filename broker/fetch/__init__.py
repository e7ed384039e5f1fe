"""Fetch, independent of how its request was parsed: sessions, reads of partitions, delayed fetches, and responses.

The steps pass values: parse a request without a change (`wire.py`, `request.py`), accept it into its session
(`fetch.py`), read the partitions (`reading.py`), wait (`ParkedFetch`), write the response (`writing.py` in place,
`response.py` as a message). Records stay memoryviews of the mapped segment from the log to the socket. A follower's
fetch reads to the log's end, and counts as progress once, before its answer is made.
Source: kafka.server.ReplicaManager.fetchMessages, DelayedFetch, FetchSession.
"""
