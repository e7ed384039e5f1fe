"""Clients of a broker whose followers lag. Each checks that its answers contain only committed records."""

from __future__ import annotations

import asyncio

from broker.replica.partition import Partition
from broker.share.state_operations import InitializeState
from coordinator.share.key import ShareKey
from protocol.errors import ErrorCode, error_code
from protocol.messages.fetch import FetchResponse, PartitionData
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.messages.offset_commit import (
    OffsetCommitResponse,
)
from protocol.messages.offset_fetch import OffsetFetchResponse
from protocol.messages.produce import ProduceResponse
from protocol.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ShareFetchRequest,
    ShareFetchResponse,
)
from protocol.records.batch import iter_batches
from tests.broker.asking import batch, fetch_request, produce_request
from tests.broker.transacting import NOT_YET, TransactionalClient
from tests.group_requests import offset_commit, offset_fetch
from tests.simulation.broker_world import BrokerWorld, SimulatedConnection
from tests.simulation.commit_world import Breach, Lag
from tests.simulation.virtual_time import virtual_clock

GROUP = "group"
WAIT_MS = 200
LATEST = -1
ACCEPT = 1
NO_TOPIC_IDS, WITH_SESSION = 12, 17


class Clients:
    """All clients, on one topic: partition 0 gets records with acks=all, partition 1 gets transactions."""

    def __init__(self, world: BrokerWorld, lag: Lag) -> None:
        self.world = world
        self.lag = lag

    def partition(self, topic: str, index: int = 0) -> Partition:
        return self.world.server.broker.replicas.partition(topic, index)

    def connection(self) -> SimulatedConnection:
        return SimulatedConnection(self.world)

    async def pause(self) -> None:
        await asyncio.sleep(self.world.dice.uniform(0, 0.1))

    # Producers and consumers

    async def produce(self, version: int, count: int) -> None:
        connection, partition = self.connection(), self.partition("t")
        for number in range(count):
            request = produce_request("t", (0, batch(b"%d" % number)))
            answer = await connection.ask(request, version, ProduceResponse)
            data = answer.responses[0].partition_responses[0]
            if not data.error_code:
                self.lag.check(Breach.ACKNOWLEDGED, partition, data.base_offset + 1)
            await self.pause()

    async def consume(self, version: int, index: int, *, committed: bool) -> None:
        """Consumes with full fetches, which name all partitions."""
        connection, offset = self.connection(), 0
        topic_id = self.partition("t").topic_id
        while True:
            request = fetch_request("t", offset, partitions=(index,), topic_id=topic_id, max_wait_ms=WAIT_MS)
            request.isolation_level = int(committed)
            answer = await connection.ask(request, version, FetchResponse)
            offset = self.seen(index, answer.responses[0].partitions[0], offset)
            await self.pause()

    async def consume_in_session(self, *, committed: bool) -> None:
        """Consumes in a fetch session, which names only changes."""
        connection, topic_id = self.connection(), self.partition("t").topic_id
        offsets, changed, session_id, epoch = {0: 0, 1: 0}, {0, 1}, 0, 0
        while True:
            request = fetch_request("", topic_id=topic_id, max_wait_ms=WAIT_MS, session=(session_id, epoch))
            (topic,) = request.topics
            (one,) = topic.partitions
            topic.partitions = [
                type(one)(partition=index, fetch_offset=offsets[index], partition_max_bytes=one.partition_max_bytes)
                for index in sorted(changed)
            ]
            request.topics = [topic] if changed else []
            request.isolation_level = int(committed)
            answer = await connection.ask(request, WITH_SESSION, FetchResponse)
            assert not answer.error_code, error_code(answer.error_code)
            session_id, epoch, changed = answer.session_id, epoch + 1, set()
            for data in answer.responses[0].partitions if answer.responses else ():
                index = data.partition_index
                offset = self.seen(index, data, offsets[index])
                if offset != offsets[index]:
                    offsets[index] = offset
                    changed.add(index)
            await self.pause()

    def seen(self, index: int, data: PartitionData, offset: int) -> int:
        """Returns the offset after the records that were read."""
        partition = self.partition("t", index)
        self.lag.check(Breach.OFFSET, partition, max(data.high_watermark, data.last_stable_offset))
        if data.records:
            for _, header in iter_batches(memoryview(data.records)):
                self.lag.check(Breach.READ, partition, header.next_offset)
                offset = header.next_offset
        return offset

    async def list_ends(self) -> None:
        connection = self.connection()
        while True:
            named = [ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in (0, 1)]
            request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=named)])
            answer = await connection.ask(request, 9, ListOffsetsResponse)
            for data in answer.topics[0].partitions:
                self.lag.check(Breach.OFFSET, self.partition("t", data.partition_index), data.offset)
            await self.pause()

    # Groups and transactions

    async def commit_offsets(self, count: int) -> None:
        """Commits offsets, as the only client that writes to `__consumer_offsets`; now and then the coordinator is
        loaded again."""
        connection, partition = self.connection(), self.partition("__consumer_offsets")
        groups = self.world.server.broker.groups
        for number in range(count):
            end = partition.log_end_offset
            answer = await connection.ask(offset_commit(GROUP, {"t": {0: number}}), 8, OffsetCommitResponse)
            if not answer.topics[0].partitions[0].error_code:
                self.lag.check(Breach.GROUP, partition, end + 1)
            if self.world.dice.random() < 0.3:
                unanswered = asyncio.ensure_future(
                    self.connection().ask(offset_commit(GROUP, {"t": {0: -1}}), 8, OffsetCommitResponse)
                )
                while partition.log_end_offset == end + 1:  # noqa: ASYNC110 (nobody tells of an append)
                    await asyncio.sleep(0.001)
                groups._give_up(0)
                groups._follow(partition)
                await unanswered  # by whoever has the group then
                await asyncio.sleep(0.001)
            end = partition.log_end_offset
            fetch = offset_fetch(GROUP)
            fetched = await connection.ask(fetch, 8, OffsetFetchResponse)
            if not fetched.groups[0].error_code:
                self.lag.check(Breach.GROUP, partition, end)
            await self.pause()

    async def transact(self, count: int, *, v2: bool) -> None:
        """Runs transactions, as the only client that writes to `__transaction_state` and to the second partition."""
        client, log = (
            TransactionalClient(self.connection(), virtual_clock().now_ms),
            self.partition("__transaction_state"),
        )
        data = self.partition("t", 1)
        for number in range(count):
            end = log.log_end_offset
            code, producer = await client.init()
            while code in NOT_YET:
                await self.pause()
                end = log.log_end_offset
                code, producer = await client.init()
            assert code is ErrorCode.NONE, code
            self.lag.check(Breach.TRANSACTION, log, end + 1)
            end = log.log_end_offset
            if not v2:
                assert await client.add(producer, 1) == [ErrorCode.NONE]
                self.lag.check(Breach.TRANSACTION, log, end + 1)
            code = ErrorCode.REQUEST_TIMED_OUT
            while code is ErrorCode.REQUEST_TIMED_OUT:
                code = await client.write(producer, f"{number}", partition=1, version=12 if v2 else 11)
            assert code is ErrorCode.NONE, code
            self.lag.check(Breach.ACKNOWLEDGED, data, data.log_end_offset)
            self.lag.check(Breach.TRANSACTION, log, end + 1)
            end = log.log_end_offset
            code, _ = await client.end(producer, committed=number % 2 == 0, version=5 if v2 else 4)
            assert code is ErrorCode.NONE, code
            self.lag.check(Breach.TRANSACTION, log, end + 1)
            while not (await client.describe()).transaction_state.startswith("Complete"):
                await self.pause()
            self.lag.check(Breach.MARKER, data, data.log_end_offset)

    # Share groups

    async def share(self) -> None:
        """Consumes as a share group member that accepts all records."""
        broker, connection, epoch = self.world.server.broker, self.connection(), 0
        data, state = self.partition("t"), self.partition("__share_group_state")
        acknowledgements: list[AcknowledgementBatch] = []
        await broker.share_groups.persister.submit(InitializeState(ShareKey(GROUP, data.topic_id, 0), 1, 0))
        while True:
            end = state.log_end_offset
            named = [FetchPartition(partition_index=0, acknowledgement_batches=acknowledgements)]
            topics = [FetchTopic(topic_id=data.topic_id, partitions=named)] if acknowledgements or not epoch else []
            request = ShareFetchRequest(
                group_id=GROUP, member_id="member", share_session_epoch=epoch, max_wait_ms=WAIT_MS, min_bytes=1,
                max_bytes=1 << 20, max_records=500, batch_size=500, topics=topics, forgotten_topics_data=[],
            )  # fmt: skip
            answer = await connection.ask(request, 2, ShareFetchResponse)
            assert not answer.error_code, error_code(answer.error_code)
            epoch += 1
            partitions = [one for topic in answer.responses for one in topic.partitions]
            if acknowledgements and not any(one.acknowledge_error_code for one in partitions):
                self.lag.check(Breach.SHARED, state, end + 1)
            acquired = [acquired_range for one in partitions for acquired_range in one.acquired_records]
            for acquired_range in acquired:
                self.lag.check(Breach.SHARED, data, acquired_range.last_offset + 1)
            acknowledgements = [
                AcknowledgementBatch(
                    first_offset=acquired_range.first_offset,
                    last_offset=acquired_range.last_offset,
                    acknowledge_types=[ACCEPT],
                )
                for acquired_range in acquired
            ]
            await self.pause()
