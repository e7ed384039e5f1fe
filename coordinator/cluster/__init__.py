"""Cluster metadata as in KRaft: topics, partitions, configs, features and brokers, as a fold of the metadata log's
records.
"""
