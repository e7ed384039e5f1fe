"""Jobs over topics on Apache Spark: generate, load, stream, report, mirror, replay, audit.

They reach brokers over TCP only, with stock clients: Spark's Kafka connector for reading in bulk, librdkafka for
questions (offsets, topic ids, configs) and for writing, because Spark's sink keeps neither timestamps nor a
partition's order over retries. They work the same with any broker that speaks the Kafka protocol. docs/pipeline.md is
the walk-through.
"""
