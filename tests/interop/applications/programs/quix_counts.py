"""Quix Streams: a count per key in a state store, exactly once. Arguments: bootstrap, folder, input, output."""

import sys

from quixstreams import Application, State

bootstrap, folder, source, target = sys.argv[1:]
app = Application(
    broker_address=bootstrap,
    consumer_group="quix-counts",
    auto_offset_reset="earliest",
    state_dir=folder,
    processing_guarantee="exactly-once",
    commit_interval=0.2,
    consumer_extra_config={"session.timeout.ms": 6000},
    producer_extra_config={"transaction.timeout.ms": 10000},
)
inputs = app.topic(source, key_deserializer="str", value_deserializer="str")
outputs = app.topic(target, key_serializer="str", value_serializer="str")


def count(_: str, state: State) -> str:
    state.set("count", state.get("count", 0) + 1)
    return str(state.get("count"))


app.dataframe(inputs).apply(count, stateful=True).to_topic(outputs)
app.run()
