"""Sentry's arroyo: copies a topic and commits what was produced. Arguments: bootstrap, folder, input, output."""

import sys

from arroyo import Topic
from arroyo.backends.kafka import KafkaConsumer, KafkaProducer
from arroyo.processing import StreamProcessor
from arroyo.processing.strategies import CommitOffsets, ProcessingStrategyFactory, Produce

bootstrap, folder, source, target = sys.argv[1:]
consumer = KafkaConsumer(
    {
        "bootstrap.servers": bootstrap,
        "group.id": "arroyo-copy",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
        "session.timeout.ms": 6000,
    }
)
producer = KafkaProducer({"bootstrap.servers": bootstrap, "enable.idempotence": True})


class Copies(ProcessingStrategyFactory):
    def create_with_partitions(self, commit, _partitions):
        return Produce(producer, Topic(target), CommitOffsets(commit))


StreamProcessor(consumer, Topic(source), Copies()).run()
