"""The transaction coordinator: one shard for each partition of `__transaction_state` (KIP-98, KIP-360, KIP-890)."""
