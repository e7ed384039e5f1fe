"""Groups: classic, consumer, share and streams groups, on __consumer_offsets.

Each protocol is a folder of decisions: `classic/`, `consumer/` (KIP-848), `share/` (KIP-932), `streams/` (KIP-1071);
`modern/` has what the last three share. `shard.py` says which module applies a record, `requests.py` which protocol
answers a member. No record has a deadline: a loaded shard sets the deadlines again. A classic group's `rendezvous.py`
(members that wait for each other) is in no record either. A group changes its protocol in one batch that ends the old
protocol and begins the new one (`consumer/upgrade.py`, `consumer/downgrade.py`, `streams/migration.py`).
"""
