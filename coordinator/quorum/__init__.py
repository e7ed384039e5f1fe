"""KRaft as decisions, without sockets: the requests of a node of the metadata quorum, and the steps that follow from
the answers.

An epoch never goes back, and an epoch's leader never changes. An observer rejects damaged batches, gaps, impossible
epochs, and any truncation or snapshot below its committed offset.

`raft.py` is the replica of a quorum of any number of voters, and `rules.py` has its rules. `observer.py` is a broker
without a vote.
"""
