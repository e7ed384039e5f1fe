"""The broker's replicas, between the APIs and the logs on disk.

`Partition` is the only access to a partition's log. Its role changes through `Partition.become` alone, which
`Assignments` calls with each change of the metadata; while a thread truncates the log, the next role waits. The leader
proposes a change of the in-sync replicas to the controller and, until the answer or the metadata is here, commits by
the larger of the two sets.
"""
