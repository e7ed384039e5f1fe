"""Partitions: changes of their leaders, in-sync replicas and assignments."""
