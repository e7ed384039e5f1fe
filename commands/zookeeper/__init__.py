"""Consumer groups that coordinate through ZooKeeper (Kafka 0.8 to 1.1)."""
