"""The shell of `coordinator.replication`: fetches from the leaders of other brokers' partitions, and follows them."""
