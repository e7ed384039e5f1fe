"""Prints records, answers and timers for a transcript: short, and the same in every run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from coordinator.group.records import EndTransaction, GroupRecord
from protocol.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription, read
from protocol.errors import KafkaError, ProtocolError, error_code
from protocol.schema import fields_of
from protocol.types import NO_UUID
from tests.coordinator.group.world import Groups

MEMBER_UUID = re.compile(r"-00000000-0000-0000-0000-0*([0-9a-f]+)")
DATA_FIELDS = {
    "metadata": ConsumerProtocolSubscription,
    "subscription": ConsumerProtocolSubscription,
    "member_metadata": ConsumerProtocolSubscription,
    "assignment": ConsumerProtocolAssignment,
    "member_assignment": ConsumerProtocolAssignment,
}
TIME_FIELDS = frozenset({"current_state_timestamp", "commit_timestamp", "expire_timestamp", "assignment_timestamp"})
SHORT = 80
UNSET = -1
LEFT_OUT = frozenset({"throttle_time_ms"})


class Printer:
    """Prints the effects of a scenario on its groups."""

    def __init__(self, groups: Groups) -> None:
        self.groups = groups

    def record(self, record: GroupRecord | EndTransaction) -> str:
        if isinstance(record, EndTransaction):
            return f"marker {'commit' if record.committed else 'abort'} producer={record.producer_id}"
        kind = type(record.key).__name__.removesuffix("Key")
        producer = f" of producer {record.producer_id}" if record.producer_id >= 0 else ""
        what = f"record {kind}{producer} {self.message(record.key)}"
        return f"{what} gone" if record.value is None else f"{what} = v{record.version} {self.message(record.value)}"

    def answer(self, answer: object) -> str:
        if isinstance(answer, KafkaError):
            return f"error {answer.code.name}"
        if isinstance(answer, list):
            return ", ".join(self.answer(part) for part in answer) or "nothing"
        if answer is None:
            return "done"
        return f"{type(answer).__name__.removesuffix('Response')} {self.message(answer) or 'ok'}"

    def message(self, message: Any) -> str:
        """Returns a message's fields that are neither zero nor empty."""
        values = {field.name: getattr(message, field.name) for field in fields_of(type(message))}
        shown = {name: value for name, value in values.items() if name not in LEFT_OUT and not is_nothing(value)}
        return " ".join(self.field(name, value) for name, value in shown.items())

    def field(self, name: str, value: object) -> str:
        if name == "error_code" and isinstance(value, int):
            return f"error={error_code(value).name}"
        if name in TIME_FIELDS and isinstance(value, int) and value >= 0:
            return f"{name}={value - 1_000_000}"
        return f"{name}={self.value(name, value)}"

    def value(self, name: str, value: object) -> str:
        if isinstance(value, bytes):
            return self.bytes(name, value)
        if isinstance(value, list):
            return self.items([self.value(name, element) for element in value])
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, int | float | None):
            return str(value)
        return "(" + self.message(value) + ")"

    @staticmethod
    def items(shown: list[str]) -> str:
        """Returns items on one line if they are few, else each on a separate line."""
        line = "[" + ", ".join(shown) + "]"
        return line if len(line) <= SHORT else "[\n    " + ",\n    ".join(shown) + "]"

    def bytes(self, name: str, value: bytes) -> str:
        """Returns a topic id as the topic's name, and consumers' metadata and assignments by their fields."""
        if name == "topic_id":
            topic = self.groups.topics.topic_by_id(value)
            return topic.name if topic is not None else "none" if value == NO_UUID else value.hex()[-4:]
        if name in DATA_FIELDS and value:
            try:
                return "(" + self.message(read(DATA_FIELDS[name], value)) + ")"
            except ProtocolError:
                pass
        return repr(value.decode("latin-1"))

    @staticmethod
    def text(value: str) -> str:
        short = MEMBER_UUID.sub(r"#\1", value)
        return short if short and " " not in short else repr(short)

    def fields(self, event: str, fields: Mapping[str, object]) -> str:
        shown = " ".join(f"{name}={self.value(name, value)}" for name, value in fields.items())
        return f"{event}: {shown}"

    def timers(self) -> dict[str, int]:
        """Returns every timer's deadline, by the words of its key."""
        timers = self.groups.shard.state.timers
        named = {key: " ".join(key) if isinstance(key, tuple) else str(key) for key in timers}
        return {self.text_of_key(name): timers.deadline_ms(key) or 0 for key, name in named.items()}

    def text_of_key(self, key: str) -> str:
        return MEMBER_UUID.sub(r"#\1", key)

    def timers_since(self, before: Mapping[str, int]) -> list[str]:
        """Returns the timers that were set, moved or cancelled."""
        now = self.timers()
        moved = [f"timer {key} in {at - self.groups.now_ms}" for key, at in now.items() if before.get(key) != at]
        return sorted(moved) + sorted(f"timer {key} off" for key in before if key not in now)


def is_nothing(value: object) -> bool:
    """True for zeros and empty values, which transcripts leave out."""
    return not value or value == UNSET
