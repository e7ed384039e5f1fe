"""Celery: tasks in a topic. Arguments: bootstrap, file, and either `work` or the range of numbers to send.

A worker appends the number of each task to the file, then acknowledges the task.
"""

import sys
from pathlib import Path

from celery import Celery

bootstrap, file, *numbers = sys.argv[1:]
app = Celery(broker=f"confluentkafka://{bootstrap}")
app.conf.update(
    task_default_queue="tasks",
    task_acks_late=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    worker_enable_remote_control=False,  # needs queues that the transport lacks
    broker_connection_retry_on_startup=True,
    broker_transport_options={
        "wait_time_seconds": 1,
        "kafka_consumer_config": {"session.timeout.ms": 6000},
        "kafka_producer_config": {"enable.idempotence": True, "linger.ms": 0},
    },
)


@app.task(name="note")
def note(number):
    with Path(file).open("a") as output:
        output.write(f"{number}\n")


if numbers == ["work"]:
    app.worker_main(
        ["worker", "--pool=solo", "--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=warning"]
    )
else:
    begin, end = map(int, numbers)
    for number in range(begin, end):
        note.delay(number)
