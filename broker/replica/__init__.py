"""The broker's replicas: what stands between the APIs and the logs on disk."""
