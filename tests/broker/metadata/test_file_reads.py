"""Tests files that options name: a thread reads them, the decision is made again with the verdict, and the number of
hung reads is limited."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from broker.clock import SystemClock
from broker.metadata.file_reads import FILE_READ_TIMEOUT_MS, MAX_FILE_READS, FileReads
from coordinator.cluster.configs.resource import ConfigResource, ResourceType
from coordinator.cluster.configs.rules import ConfigRules, FileCheck
from protocol.errors import ErrorCode, KafkaError
from tests.broker.inprocess import LONG_S
from tests.clock import ManualClock

OWN = ConfigResource(ResourceType.BROKER, "1")


class Hung:
    """Files whose reads wait until a test answers them."""

    def __init__(self) -> None:
        self.answered = threading.Event()

    def read(self) -> None:
        assert threading.current_thread() is not threading.main_thread(), "the event loop reads files"
        assert self.answered.wait(LONG_S)


def rules_of(check: Callable[[str], None], subjects: list[str]) -> ConfigRules:
    """Returns rules that check the text in force, the last in `subjects`, by its files."""

    def checker(_name: str, _configs: object) -> FileCheck:
        subject = subjects[-1]
        return FileCheck(subject, lambda: check(subject))

    return ConfigRules(1, checkers={ResourceType.BROKER: checker})


async def decided(reads: FileReads, rules: ConfigRules) -> str:
    async def decide(known: ConfigRules) -> str:
        try:
            known.check(OWN, {})
        except KafkaError as error:
            return str(error)
        return "good"

    return await reads.decided(rules, decide)


async def test_a_decision_is_made_with_the_verdict_on_its_files() -> None:
    def check(subject: str) -> None:
        if subject == "bad":
            raise KafkaError(ErrorCode.INVALID_REQUEST, "no certificate")

    reads = FileReads(SystemClock())
    assert await decided(reads, rules_of(check, ["good"])) == "good"
    assert await decided(reads, rules_of(check, ["bad"])) == "INVALID_REQUEST: no certificate"


async def test_the_files_are_read_for_each_request_and_again_when_the_configs_have_changed() -> None:
    subjects, read = ["first"], list[str]()

    def check(subject: str) -> None:
        read.append(subject)
        if len(read) == 2:
            subjects.append("changed meanwhile")

    reads, rules = FileReads(SystemClock()), rules_of(check, subjects)
    assert [await decided(reads, rules), await decided(reads, rules)] == ["good", "good"]
    assert read == ["first", "first", "changed meanwhile"]


async def test_beyond_the_most_reads_at_work_the_next_is_rejected_at_once() -> None:
    hung, reads = Hung(), FileReads(SystemClock())
    async with asyncio.timeout(LONG_S), asyncio.TaskGroup() as group:
        waiting = [group.create_task(reads.call(hung.read)) for _ in range(MAX_FILE_READS)]
        await asyncio.sleep(0)
        with pytest.raises(KafkaError, match="4 earlier reads of files that options name have not ended"):
            await reads.call(hung.read)
        assert await decided(reads, rules_of(lambda _: hung.read(), ["x"])) == (
            "REQUEST_TIMED_OUT: 4 earlier reads of files that options name have not ended; is a file system hung?"
        )
        hung.answered.set()
        await asyncio.wait(waiting)
        await reads.call(hung.read)


async def test_a_read_that_does_not_end_is_given_up_and_keeps_its_place() -> None:
    hung, clock = Hung(), ManualClock()
    reads = FileReads(clock)
    waiting = [asyncio.ensure_future(reads.call(hung.read)) for _ in range(MAX_FILE_READS)]
    assert await clock.next_timer() == FILE_READ_TIMEOUT_MS
    clock.advance(FILE_READ_TIMEOUT_MS)
    for given_up in waiting:
        with pytest.raises(KafkaError, match="were not read within 10000 ms"):
            await given_up
    with pytest.raises(KafkaError, match="have not ended"):
        await reads.call(hung.read)
    hung.answered.set()


async def test_an_error_of_the_work_is_the_caller_s() -> None:
    def fail() -> None:
        raise ValueError("no file")

    with pytest.raises(ValueError, match="no file"):
        await FileReads(SystemClock()).call(fail)
