"""The commands of transcripts of transactions, and the text of their effects.

A producer is its id and epoch, `7000/0`; `v=` is the transaction.version of a client. `writer` is the marker writer:
`writer` requests the markers to write, `written ID …` reports that these partitions, or all, have their markers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from coordinator.transaction.markers import Markers
from coordinator.transaction.state import BY_TEXT
from coordinator.transaction.transaction import Producer, Transaction
from protocol.errors import ErrorCode
from protocol.types import TopicPartition
from tests.coordinator.driver import START_MS
from tests.coordinator.transaction.given import TIMEOUT_MS, Given, Taken, transaction
from tests.scenarios.runner import RULE, Words, steps, words

Command = Callable[[Given, Words], Taken]

V2 = 2
NOTHING = Taken([], None)


def producer(text: str) -> Producer:
    number, epoch = text.split("/")
    return Producer(int(number), int(epoch))


def partitions(names: Iterable[str]) -> list[TopicPartition]:
    return [TopicPartition(topic, int(index)) for topic, index in (name.rsplit("-", 1) for name in names)]


def version(given: Given, arguments: Words) -> Taken:
    """Sets the cluster's transaction.version."""
    given.version = int(arguments.plain[0])
    return NOTHING


def put(given: Given, arguments: Words) -> Taken:
    """Puts a transaction into the state as if loaded: id, state, producer, partitions."""
    name, state, by, *names = arguments.plain
    loaded = transaction(BY_TEXT[state], producer(by), partitions=frozenset(partitions(names)), client_version=V2)
    given.put(loaded._replace(transactional_id=name))
    return NOTHING


def init(given: Given, arguments: Words) -> Taken:
    (name,) = arguments.plain
    expected = arguments.named.get("expected")
    return given.init(producer(expected) if expected else None, arguments.int("timeout", TIMEOUT_MS), name)


def add(given: Given, arguments: Words) -> Taken:
    name, by, *names = arguments.plain
    return given.add(producer(by), *partitions(names), version=arguments.int("v", V2), name=name)


def verify(given: Given, arguments: Words) -> Taken:
    name, by, *names = arguments.plain
    return given.verify(producer(by), *partitions(names), name=name)


def commit(given: Given, arguments: Words) -> Taken:
    name, by = arguments.plain
    return given.commit(producer(by), arguments.int("v", V2), name)


def abort(given: Given, arguments: Words) -> Taken:
    name, by = arguments.plain
    return given.abort(producer(by), arguments.int("v", V2), name)


def writer(given: Given, _arguments: Words) -> Taken:
    return given.write_on()


def written(given: Given, arguments: Words) -> Taken:
    name, *names = arguments.plain
    done = partitions(names) if names else given.shard.transactions[name].partitions
    return given.write_on({name: done})


def advance(given: Given, arguments: Words) -> Taken:
    return given.pass_time(int(arguments.plain[0]))


def restart(given: Given, _arguments: Words) -> Taken:
    """Loads the shard again, as another broker that takes over does."""
    given.restart()
    return NOTHING


def ids(given: Given, arguments: Words) -> Taken:
    """Sets whether producer ids are available."""
    given.ids_at_hand = arguments.plain[0] == "yes"
    return NOTHING


COMMANDS: dict[str, Command] = {
    command.__name__: command
    for command in (version, put, init, add, verify, commit, abort, writer, written, advance, restart, ids)
}


def play(text: str) -> str:
    """Returns the transcript with its commands and their present effects."""
    given = Given()
    blocks = []
    for step in steps(text):
        effects: list[str] = []
        for line in step.commands:
            command = words(line)
            result = COMMANDS[command.plain[0]](given, Words(command.plain[1:], command.named))
            effects += described(given, result)
        blocks.append("\n".join([*step.before, *step.commands, RULE, *effects]))
    return "\n\n".join(blocks) + "\n"


def described(given: Given, result: Taken) -> Iterable[str]:
    yield from map(record, result.records)
    if result.answer is not None:
        yield f"<- {answer(result.answer)}"
    to_write = given.markers()
    if to_write is not None:
        yield f"writer <- {answer(to_write)}"


def record(wrote: Transaction | None) -> str:
    if wrote is None:
        return "record forgotten"
    fields = [
        f"record {wrote.transactional_id} {wrote.state.text}",
        f"{wrote.producer_id}/{wrote.epoch}",
        f"of v{wrote.client_version}",
    ]
    if wrote.next_producer_id >= 0:
        fields.append(f"next={wrote.next_producer_id}")
    if wrote.previous_producer_id not in (-1, wrote.producer_id):
        fields.append(f"previous={wrote.previous_producer_id}")
    if wrote.last_epoch >= 0:
        fields.append(f"last_epoch={wrote.last_epoch}")
    if wrote.started_ms >= 0:
        fields.append(f"started={wrote.started_ms - START_MS}")
    return " ".join([*fields, *named(wrote.partitions)])


def named(names: Iterable[TopicPartition]) -> list[str]:
    return [f"{topic}-{index}" for topic, index in sorted(names)]


def answer(value: object) -> str:
    if isinstance(value, ErrorCode):
        return value.name
    if isinstance(value, Producer):
        return f"{value.producer_id}/{value.epoch}"
    if isinstance(value, frozenset):
        return " ".join(named(value)) or "none"
    assert isinstance(value, list)
    return ", ".join(map(markers, value))


def markers(to_write: Markers) -> str:
    how = "commit" if to_write.committed else "abort"
    return " ".join([how, f"{to_write.producer_id}/{to_write.epoch}", *named(to_write.partitions)])
