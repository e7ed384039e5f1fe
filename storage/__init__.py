"""Logs on disk, in Apache Kafka's own formats. Callers pass the time as an argument; only `disk` opens files."""
