"""Groups, transactions, share group state, cluster metadata: records are the facts, and applying them makes the
state."""
