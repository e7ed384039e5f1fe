"""Streams groups (KIP-1071): the coordinator assigns the tasks of Kafka Streams applications.

A heartbeat is one decision, made in this order:

    requests.py, topology.py     check the request, and read the topology of a member that joins
    group.py, member.py          find the member and its epochs (migration.py: an empty classic group becomes a group)
    configured.py                decide the partition counts (partition_counts.py) and the missing internal topics
    update.py                    the group's epoch, and a new target assignment (assignor.py) if it is due
    reconciliation.py            one step of the member from its tasks (owned.py) to its target
    heartbeat.py                 the answer: tasks, statuses (status.py) and endpoints (endpoints.py)

`tasks.py` has the sets of tasks that all of these use. `records.py` and `replay.py` write and apply the records 17 to
23; `commits.py` checks commits of offsets; `fencing.py` removes members; `describe.py` answers administrators.

The assignor, the partition counts and the endpoints are pure functions. The partition counts are in no record: they are
decided again from the topology and the cluster's topics, in Apache Kafka's order, after a group is loaded.
"""
