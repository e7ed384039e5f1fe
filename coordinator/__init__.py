"""Groups, transactions, share state, cluster metadata: facts are records, state is their fold.

`engine/` runs the machines of groups, transactions and share state: decide, append, apply, wait for the commit, release
the replies. A decision that fails by a bug fails for its own request or timer; a machine whose state may be half
changed is loaded again.
"""
