"""Faust: an agent that copies a topic, with at-least-once delivery. Arguments: bootstrap, folder, input, output."""

import sys

import faust

bootstrap, folder, source, target = sys.argv[1:]
app = faust.App(
    "faust-copy",
    broker=f"kafka://{bootstrap}",
    datadir=folder,
    web_enabled=False,
    key_serializer="raw",
    value_serializer="raw",
    topic_partitions=4,
    topic_replication_factor=1,
    broker_session_timeout=6,
    broker_heartbeat_interval=1,
    broker_request_timeout=20,
    broker_commit_interval=0.5,
    stream_wait_empty=False,
)
output = app.topic(target, key_serializer="raw", value_serializer="raw")


@app.agent(app.topic(source, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw"))
async def copy(stream):
    async for key, value in stream.items():
        await (await output.send(key=key, value=value))


sys.argv[1:] = ["worker", "--loglevel=warning", "--without-web"]
app.main()
