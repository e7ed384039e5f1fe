"""Groups, transactions, share group state and cluster metadata: their state is the fold of their records.

`engine/` runs the machines of groups, transactions and share state: decide, append, apply, wait for the commit, release
the replies. A decision that fails by a bug fails for its own request or timer; a machine whose state may be half
changed is loaded again.
"""
