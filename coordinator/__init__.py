"""Groups, transactions, share state, cluster metadata: facts are records, state is their fold."""
