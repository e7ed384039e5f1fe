"""The broker's replicas, between the APIs and the logs on disk."""
