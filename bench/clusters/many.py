"""Ten thousand partitions on three brokers: their cost while idle, and the duration of a start and a failover."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from bench.clusters import topics
from bench.clusters.cluster import BROKERS, BenchCluster, TimedOut, until
from bench.figures import MB, Sample

TOPIC = "many"
IDLE_S = 10.0
SETTLE_S = 15.0
"""Pause after the creation, in which a JVM still compiles."""
LOOK_S = 0.5
"""Time between two checks of all partitions, each of which takes the broker some milliseconds."""

VICTIM, *OTHERS = BROKERS


def many_partitions(cluster: BenchCluster, assignments: Sequence[Sequence[int]]) -> Sample:
    """Measures the creation, an idle time, a failover of a third of the partitions, the way back, memory, and a stop
    and start of all nodes.

    Raises Unavailable if this machine's limits are too low, TimedOut, NotRunning.
    """
    cluster.flavour.brokers.require_room(len(assignments))
    sample = {"partitions": float(len(assignments))}
    sample["create_ms"] = timed(lambda: create(cluster, assignments))
    time.sleep(SETTLE_S)
    sample |= idle(cluster)
    sample["failover_ms"] = timed(lambda: fail_over(cluster))
    sample["rejoin_ms"] = timed(lambda: rejoin(cluster, assignments))
    sample["private_mb"] = max(private_mb(cluster))
    sample["stop_ms"] = timed(lambda: stop(cluster))
    sample["restart_ms"] = timed(lambda: restart(cluster, assignments))
    cluster.kill()  # measuring a second stop would give nothing new
    return sample


def timed(action: Callable[[], None]) -> float:
    """Returns the milliseconds that an action takes."""
    began = time.monotonic()
    action()
    return (time.monotonic() - began) * 1000


def create(cluster: BenchCluster, assignments: Sequence[Sequence[int]]) -> None:
    """Creates the topic, and waits until each broker has the logs of its replicas and serves the partitions that it
    leads. Metadata isn't enough: it shows new replicas as in sync before their logs exist."""
    topics.create(cluster, TOPIC, assignments, look_s=LOOK_S)
    expected = {broker_id: sum(broker_id in replicas for replicas in assignments) for broker_id in BROKERS}
    until(
        "all logs are created",
        lambda: {broker_id: logs(cluster, broker_id) for broker_id in BROKERS} == expected,
        LOOK_S,
    )
    client = topics.admin(cluster.bootstrap)
    until("all partitions are served", lambda: topics.are_served(client, TOPIC), LOOK_S)


def logs(cluster: BenchCluster, broker_id: int) -> int:
    """Returns the number of the topic's logs on a broker. Odradek and Apache Kafka both have a folder for each."""
    return sum(1 for _ in cluster.data(broker_id).glob(f"{TOPIC}-*"))


def idle(cluster: BenchCluster) -> dict[str, float]:
    """Returns the share of a processor that a broker uses while it has no requests."""
    before_s = cluster.cpu_s()
    time.sleep(IDLE_S)
    return {"cpu_percent": (cluster.cpu_s() - before_s) / IDLE_S / len(BROKERS) * 100}


def stop(cluster: BenchCluster) -> None:
    """Stops all nodes cleanly. Raises TimedOut."""
    killed = cluster.stop()
    if killed:
        raise TimedOut(f"did not stop in time, and were killed: {', '.join(killed)}")


def restart(cluster: BenchCluster, assignments: Sequence[Sequence[int]]) -> None:
    """Starts all nodes, and waits until all replicas are in sync."""
    cluster.start()
    topics.wait_in_sync(cluster, TOPIC, assignments, LOOK_S)


def fail_over(cluster: BenchCluster) -> None:
    """Kills a broker, and waits until the others lead all partitions, in the metadata of each of them, and serve
    them.
    """
    clients = [topics.admin(cluster.addresses[broker_id]) for broker_id in OTHERS]
    cluster.brokers[VICTIM].kill()
    for client in clients:

        def others_lead(client: object = client) -> bool:
            return all(partition.leader in OTHERS for partition in topics.partitions(client, TOPIC).values())

        until("the others lead all partitions", others_lead, look_s=LOOK_S)
    until("the others serve all partitions", lambda: topics.are_served(clients[0], TOPIC), LOOK_S)


def rejoin(cluster: BenchCluster, assignments: Sequence[Sequence[int]]) -> None:
    """Starts the broker again, and waits until all its replicas are in sync."""
    cluster.brokers[VICTIM].start()
    cluster.brokers[VICTIM].wait_until_ready()
    topics.wait_in_sync(cluster, TOPIC, assignments, LOOK_S)


def private_mb(cluster: BenchCluster) -> list[float]:
    """Returns the memory of each broker without mapped files."""
    return [broker.memory().private_bytes / MB for broker in cluster.brokers.values()]
