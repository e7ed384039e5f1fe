"""KRaft as decisions, without sockets: the requests of a node of the metadata quorum, and the steps that follow from
the answers.

An epoch never goes back, and an epoch's leader never changes. An observer rejects damaged batches, gaps, impossible
epochs, and any truncation or snapshot below its committed offset. A leader is its quorum's only voter: it sends records
after it has flushed them, and answers voters of another set with INCONSISTENT_VOTER_SET.
"""
