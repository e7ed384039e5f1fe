"""The broker's replicas, between the APIs and the logs on disk.

`Partition` is the only access to a partition's log. Only `Partition.become` changes its role; `Assignments` calls it
with each change of the metadata. While a thread truncates the log, the next role waits. The leader proposes a change of
the in-sync replicas to the controller. Until the answer or the metadata arrives, it commits by the larger of the two
sets.
"""
