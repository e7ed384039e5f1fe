"""A follower's part of replication, sans-IO: its requests to leaders, and the steps after their answers."""
