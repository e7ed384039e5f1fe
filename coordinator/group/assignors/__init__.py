"""Assignors: they divide a group's partitions among its members."""
