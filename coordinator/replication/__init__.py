"""A follower's part in replication, sans-IO: what it asks its leaders for, and what their answers have it do."""
