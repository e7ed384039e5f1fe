"""Partitions: their leaders and replicas, and how these change."""
