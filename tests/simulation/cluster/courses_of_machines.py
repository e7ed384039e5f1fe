"""Courses of a cluster's run in which machines, directories, topics or leaders are replaced."""

from __future__ import annotations

import asyncio

import pytest

from broker.replica import following, replica_fetcher
from broker.replica.partition import Partition
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from protocol.records.building import build
from protocol.records.record import Record
from protocol.types import TopicPartition
from tests.simulation.cluster.broker import BrokerNode
from tests.simulation.cluster.clients import REQUEST_MS, Client, NoAnswer
from tests.simulation.cluster.controller import HOST
from tests.simulation.cluster.courses import FAILOVER_S, ROUNDS, TOPIC, cut_both_ways, leader
from tests.simulation.cluster.history import Breach
from tests.simulation.cluster.strikes import Strikes
from tests.simulation.virtual_time import virtual_clock

FIRST = TopicPartition(TOPIC, 0)
ANEW = TopicPartition("anew", 0)
SET, OF_TOPIC = 0, 2
HOUR_MS = 3_600_000
BUSY_S = 20
"""Time within which a restarted broker must be registered as a new incarnation and unfenced, even if one message in
fifty takes two seconds."""
DIRECTORIES = ("/data", "/data-2")


def others_than(world: Strikes, node: BrokerNode) -> list[BrokerNode]:
    return [one for one in world.brokers.values() if one is not node]


async def leaders_are_replaced(world: Strikes) -> None:
    """A leader comes back empty and gets no metadata, while another broker with old metadata sends clients to it."""
    for _ in range(3):
        await asyncio.sleep(world.dice.uniform(1, 2))
        replaced = leader(world)
        if replaced is None or not world.may_die(replaced, power=True):
            continue
        others = others_than(world, replaced)
        world.network.cut(HOST, others[0].host)
        world.kill(replaced, power=True)
        replaced.replace_disk()
        replaced.start()
        for other in others:
            cut_both_ways(world, replaced.host, other.host)
        await asyncio.sleep(FAILOVER_S)
        world.network.heal()


async def answers_are_damaged(world: Strikes) -> None:
    """Flips a bit in leaders' answers, as faulty memory does, while leaders change."""
    append = following.append_as_follower

    def damaged(partition: Partition, records: memoryview, *arguments: int) -> int:
        if world.dice.random() < 0.1:
            records = memoryview(bytearray(records))
            records[-2] ^= 1  # of the last record's value
        return append(partition, records, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replica_fetcher, "append_as_follower", damaged)
        for _ in range(6):
            await asyncio.sleep(world.dice.uniform(0.3, 1))
            await world.strike("elect")


async def a_follower_comes_after_the_start(world: Strikes) -> None:
    """Deletes all records that a follower would fetch next, while the follower is away."""
    client = world.client("deleter")
    for _ in range(3):
        await asyncio.sleep(world.dice.uniform(0.5, 1))
        leading = leader(world)
        if leading is None:
            continue
        away = world.dice.choice(others_than(world, leading))
        for host in (HOST, *(node.host for node in others_than(world, away))):
            cut_both_ways(world, away.host, host)
        await asyncio.sleep(FAILOVER_S)
        await client.process.spawn(_delete_all(world, client))
        world.network.heal()
        await asyncio.sleep(1)


async def _delete_all(world: Strikes, client: Client) -> None:
    """Deletes all committed records, if there is a leader."""
    leading = leader(world)
    if leading is None or leading.server is None:
        return
    offset = leading.server.broker.replicas.topic(TOPIC)[0].high_watermark
    world.history.deleted[FIRST] = offset
    named = [DeleteRecordsPartition(partition_index=0, offset=offset)]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=TOPIC, partitions=named)], timeout_ms=REQUEST_MS)
    try:
        await client.ask(leading.node_id, request, DeleteRecordsResponse)
    except NoAnswer:
        world.history.counts["deletion unanswered"] += 1


async def topics_are_made_anew(world: Strikes) -> None:
    """Deletes a topic and creates another one with its name, while a broker is down."""
    client = world.client("of a topic")
    await _make_anew(world, client, b"former")
    await asyncio.sleep(1)
    for _ in range(2):
        away = world.dice.choice([*world.brokers.values()])
        world.kill(away, power=False)
        await asyncio.sleep(FAILOVER_S)
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=ANEW.topic, topic_id=bytes(16))], timeout_ms=1_000)
        await world.ask_controller(request, DeleteTopicsResponse)
        await _make_anew(world, client, b"of today")
        away.start()
        await asyncio.sleep(FAILOVER_S)


async def _make_anew(world: Strikes, client: Client, value: bytes) -> None:
    topic = CreatableTopic(name=ANEW.topic, num_partitions=1, replication_factor=3, assignments=[], configs=[])
    await world.ask_controller(CreateTopicsRequest(topics=[topic], timeout_ms=1_000), CreateTopicsResponse)
    client.forget_topic(ANEW.topic)
    for _ in range(world.dice.randint(3, 9)):
        records = bytes(build([Record(timestamp=virtual_clock().now_ms(), value=value)]))
        try:
            await client.process.spawn(client.send(ANEW, records, -1))
        except NoAnswer:
            client.forget_leader(ANEW)
            await asyncio.sleep(0.3)


async def directories_change(world: Strikes) -> None:
    """Moves replicas from one log directory of their broker to the other, while leaders die."""
    client = world.client("of directories")
    for _ in range(ROUNDS // 2):
        await asyncio.sleep(world.dice.uniform(0.2, 0.6))
        topics = [AlterReplicaLogDirTopic(name=TOPIC, partitions=[0, 1])]
        request = AlterReplicaLogDirsRequest(
            dirs=[AlterReplicaLogDir(path=world.dice.choice(DIRECTORIES), topics=topics)]
        )
        node_id = world.dice.choice([*world.brokers])
        try:
            await client.process.spawn(client.ask(node_id, request, AlterReplicaLogDirsResponse))
        except NoAnswer:
            world.history.counts["move unanswered"] += 1
        await world.strike(world.dice.choice(("kill", "restart", "elect", "bounce")))


async def leaders_step_down(world: Strikes) -> None:
    """A leader without followers gives up its leadership to another broker, and has records that no other broker
    has."""
    for _ in range(6):
        await asyncio.sleep(world.dice.uniform(0.5, 1.5))
        former = leader(world)
        if former is None:
            continue
        others = others_than(world, former)
        for other in others:
            cut_both_ways(world, former.host, other.host)
        await asyncio.sleep(0.5)
        order = [*(node.node_id for node in others), former.node_id]
        partitions = [ReassignablePartition(partition_index=0, replicas=order)]
        topics = [ReassignableTopic(name=TOPIC, partitions=partitions)]
        request = AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=1_000)
        await world.ask_controller(request, AlterPartitionReassignmentsResponse)
        await world.strike("elect")
        await asyncio.sleep(world.dice.uniform(0, 0.1))
        world.network.heal()


async def the_metadata_change_all_the_time(world: Strikes) -> None:
    """Restarts a broker while the controller writes records all the time; the broker must serve anyway."""
    for _ in range(2):
        await asyncio.sleep(world.dice.uniform(0.3, 1))
        node = world.dice.choice([*world.brokers.values()])
        world.kill(node, power=False)
        await asyncio.sleep(FAILOVER_S)
        world.network.slowness = 20
        node.start()
        until_s = world.loop.time() + BUSY_S
        while node.server is None and world.loop.time() < until_s:
            await asyncio.sleep(0.01)
            await world.ask_controller(_retention(world.dice.randint(1, 1 << 30)), IncrementalAlterConfigsResponse)
        world.network.slowness = 1
        if node.server is None:
            world.history.breach(Breach.STUCK, f"broker {node.node_id} does not serve after {BUSY_S} s")
            return


def _retention(time_ms: int) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name="retention.ms", config_operation=SET, value=str(time_ms + HOUR_MS))
    resource = AlterConfigsResource(resource_type=OF_TOPIC, resource_name=TOPIC, configs=[config])
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)


async def replicas_move(world: Strikes) -> None:
    """Moves partitions with one replica from broker to broker."""
    for _ in range(6):
        await asyncio.sleep(world.dice.uniform(0.3, 1))
        await world.strike("move")


async def former_processes_are_heard(world: Strikes) -> None:
    """Replaces a machine repeatedly, and delivers all requests of its brokers to the controller once more, late."""
    world.network.doubling, world.network.late_s = 1, 4
    replaced = world.dice.choice([*world.brokers.values()])
    for _ in range(5):
        await asyncio.sleep(world.dice.uniform(0.2, 0.6))
        if replaced.is_alive and world.may_die(replaced, power=True):
            world.kill(replaced, power=True)
            replaced.replace_disk()
            replaced.start()
        await asyncio.sleep(FAILOVER_S)


async def followers_bounce(world: Strikes) -> None:
    """Kills a follower that has just come back, with its unflushed records, and restarts it at once."""
    world.network.loss = 0.2
    for _ in range(6):
        await asyncio.sleep(world.dice.uniform(0.5, 2))
        leading = leader(world)
        if leading is None:
            continue
        follower = world.dice.choice(others_than(world, leading))
        if follower.is_alive and world.may_die(follower, power=True):
            world.kill(follower, power=True)
            follower.start()
