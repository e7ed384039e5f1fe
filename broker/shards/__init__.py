"""Hosts the shards of coordinator/ on the partitions of internal topics that this broker leads."""
