"""The common parts of groups whose members the broker assigns partitions to."""
