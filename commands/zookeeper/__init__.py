"""Groups of consumers that meet in ZooKeeper (Kafka 0.8 to 1.1)."""
