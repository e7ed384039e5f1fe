"""KRaft as decisions, without sockets: requests of a node of the metadata quorum, and steps that answers lead to.

An epoch never goes back, and an epoch's leader never changes. An observer rejects damaged batches, gaps, impossible
epochs, and any truncation or snapshot behind its committed offset. A leader is its quorum's only voter: it hands out
records once they are flushed, and answers voters of another set with INCONSISTENT_VOTER_SET.
"""
