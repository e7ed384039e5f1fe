"""Logs on disk, in Apache Kafka's own formats. Takes the time as an argument and opens files through `disk` only."""
