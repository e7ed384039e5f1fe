"""Jobs over topics on Apache Spark: generate, load, stream, report, mirror, replay, audit.

They use only public clients: Spark's Kafka connector for bulk reads, and librdkafka for metadata (offsets, topic ids,
configs) and for writes, because Spark's sink keeps neither timestamps nor a partition's order during retries. They work
with any Kafka broker. docs/pipeline.md is the walk-through.
"""
