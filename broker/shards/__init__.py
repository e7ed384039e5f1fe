"""Hosts the shards of coordinator/ on the partitions of internal topics that this broker leads, and reaches the others.

A request for a shard goes to `submit` of its coordinator here, or through `anywhere.py` to the broker that leads the
shard's partition: one client, and one message in flight per broker and kind of request. Some requests between brokers
don't go through `anywhere.submit`:

- Appends of dead letters and telemetry (`appending.py`): each is a batch of up to max.message.bytes, so that packing
  several in a message saves nothing, and several to one broker must be in flight. They use its connections.
- A scrape's high watermarks (`broker/metrics/ends.py`) have a deadline of their own, and one message after the other.
  They use its connections.
- Requests to the controller (`broker/metadata/controllers.py`): the quorum says which controller leads, not the
  metadata; controllers have listeners of their own; and a client's request is forwarded unchanged, in an Envelope.
- Fetches of followers (`broker/replica/`): each fetcher has a session, which needs its own connection.

Each caller repeats what failed by its own rules: the persister until its operation would be late, markers forever,
and the verification of a partition only while the last transaction is ending.
"""
