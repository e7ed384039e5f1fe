"""The asyncio side of `coordinator.replication`: fetches from other brokers that lead partitions, and follows them."""
