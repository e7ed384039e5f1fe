"""Cluster metadata as KRaft keeps it: topics, partitions, configs, features and brokers, folded from records."""
