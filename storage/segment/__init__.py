"""The segments of a log: their files and indexes."""
