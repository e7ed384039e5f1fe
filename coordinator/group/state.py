"""The state of one shard, and its environment: the first argument of every decision on groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol, TypeVar

from coordinator.cluster.topics.topic import Topic
from coordinator.group.config import GroupConfig
from coordinator.group.group import Group
from coordinator.group.offsets.offsets import Offsets
from coordinator.group.settings import GroupSettings
from coordinator.group.subscription_metadata import TopicWatch
from coordinator.group.timers import Timers
from protocol.errors import ErrorCode, KafkaError
from protocol.types import Uuid

G = TypeVar("G", bound=Group)


Apply = Callable[["GroupState", Any], None]
"""(state, record): applies a record whose key has the class of its table entry."""


class Client(NamedTuple):
    """The client of a request, and the version of its API."""

    version: int
    client_id: str = ""
    host: str = ""
    """The address with a slash before it, as Kafka stores it for members."""
    may_describe: Callable[[str], bool] | None = None
    """Returns True for topics that the client may describe; None if it may describe all."""


class TopicLookup(Protocol):
    """Looks up current topics; the cluster's image does."""

    def topic(self, name: str) -> Topic | None: ...

    def topic_by_id(self, topic_id: Uuid) -> Topic | None: ...

    def topic_names(self) -> list[str]: ...


class MatchRequest(NamedTuple):
    """Patterns of a group's subscriptions, to be matched against all topics that the client may describe.

    The result comes back as the decision `consumer.patterns.patterns_matched`.
    """

    group_id: str
    member_id: str
    patterns: tuple[str, ...]
    client: Client


def unmatched(request: MatchRequest) -> None:
    """Ignores the request, for a shard without a matcher."""


def unnoted(event: str, **fields: object) -> None:
    """Ignores the event, for a shard without a log."""


class GroupEnvironment(NamedTuple):
    """The environment of a shard. Its settings are read at each use, because they change."""

    settings: Callable[[], GroupSettings]
    group_config: Callable[[str], GroupConfig]
    topics: TopicLookup
    new_uuid: Callable[[], Uuid]
    """Random bytes for a member id."""
    note: Callable[..., None] = unnoted
    """Logs an event for operators: (event, group=…, …)."""
    match_topics: Callable[[MatchRequest], None] = unmatched
    """Requests a match, which takes a while, and returns at once."""
    watch: TopicWatch | None = None
    """The watch that all shards of the broker share. A shard without it gets a watch of its own, which gets no
    changes."""


class GroupState:
    """The groups of one partition of `__consumer_offsets`, their offsets and their timers."""

    def __init__(self, environment: GroupEnvironment) -> None:
        self.environment = environment
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()
        self.timers = Timers()
        self.state_asked_ms: dict[tuple[str, Uuid], int] = {}
        """The time when state of a share group's topic was last requested; it is only in memory."""
        self.watch = environment.watch or TopicWatch(environment.topics)

    def note_state_asked(self, group_id: str, topic_ids: Iterable[Uuid], now_ms: int) -> None:
        """Remembers that state of these topics was requested; an effect."""
        self.state_asked_ms.update(((group_id, topic_id), now_ms) for topic_id in topic_ids)

    def forget_state_asked(self, group_id: str, topic_ids: Iterable[Uuid]) -> None:
        """Forgets the request, which is answered; an effect."""
        for topic_id in topic_ids:
            self.state_asked_ms.pop((group_id, topic_id), None)

    @property
    def settings(self) -> GroupSettings:
        return self.environment.settings()

    @property
    def note(self) -> Callable[..., None]:
        return self.environment.note

    def new_member_uuid(self) -> str:
        """Returns a random UUID as Java prints it, the end of classic member ids."""
        text = self.environment.new_uuid().hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def group(self, group_id: str) -> Group:
        """Returns the group; raises GROUP_ID_NOT_FOUND."""
        group = self.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def group_of(self, group_id: str, kind: type[G]) -> G:
        """Returns the group, if it is of this class; raises GROUP_ID_NOT_FOUND."""
        group = self.group(group_id)
        if not isinstance(group, kind):
            spoken = kind.__name__.removesuffix("Group").lower()
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a {spoken} group.")
        return group
