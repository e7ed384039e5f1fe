"""Clusters under load: three brokers of Odradek or of Apache Kafka, with the same controller (docs/benchmarks.md)."""
