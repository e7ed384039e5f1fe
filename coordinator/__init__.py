"""Groups, transactions, share group state and cluster metadata: their state is the fold of their records.

`engine/` runs the machines of groups, transactions and share state: decide, append, apply, wait for the commit, release
the replies. If a decision fails because of a bug, only its own request or timer fails. A machine whose state may be
half changed is loaded again.
"""
