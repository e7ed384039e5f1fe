"""Creates internal topics of streams groups in the background, and remembers the errors for the members' next
heartbeats.

Source: Kafka's AutoTopicCreationManager.createStreamsInternalTopics (KIP-1071).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.clock import Clock
from broker.logging import get_logger
from broker.replica.topics import CREATE_TIMEOUT_MS, TopicCreator
from coordinator.cluster.controller import Asker
from protocol.errors import KafkaError, error_code
from protocol.lazy import lazy

if TYPE_CHECKING:
    from protocol.messages import create_topics
    from protocol.messages.create_topics import CreatableTopic
else:  # with the first topic
    create_topics = lazy("protocol.messages.create_topics")

MAX_ERRORS: Final = 1_000
"""Maximum number of topics whose errors are remembered, as in Kafka; the oldest error is forgotten first."""

logger = get_logger(__name__)


class CreationError(NamedTuple):
    """The error of a topic, and the time until which it is remembered."""

    message: str
    until_ms: int


class StreamsTopics:
    """The internal topics that are being created, or could not be created."""

    def __init__(
        self, topics: TopicCreator, clock: Clock, spawn: Callable[[Coroutine[Any, Any, None]], object]
    ) -> None:
        self._topics = topics
        self._clock = clock
        self._spawn = spawn
        self._creating: set[str] = set()
        self._errors: dict[str, CreationError] = {}

    def create(self, topics: Mapping[str, CreatableTopic], asker: Asker, *, remember_ms: int) -> None:
        """Creates the topics for a client, except topics that are being created or failed within `remember_ms`."""
        failed = self.errors(topics)
        wanted = [topic for name, topic in topics.items() if name not in self._creating and name not in failed]
        if wanted:
            self._creating.update(topic.name for topic in wanted)
            self._spawn(self._create(wanted, asker, remember_ms))

    def errors(self, names: Iterable[str]) -> dict[str, str]:
        """Returns the messages of recent errors, by topic."""
        now_ms = self._clock.now_ms()
        recent = ((name, self._errors.get(name)) for name in names)
        return {name: error.message for name, error in recent if error is not None and now_ms < error.until_ms}

    async def _create(self, topics: list[CreatableTopic], asker: Asker, remember_ms: int) -> None:
        names = [topic.name for topic in topics]
        request = create_topics.CreateTopicsRequest(topics=topics, timeout_ms=CREATE_TIMEOUT_MS)
        try:
            response = await self._topics.create(request, asker)
        except KafkaError as error:
            failed = dict.fromkeys(names, error.message or error.code.message)
        else:
            failed = {
                result.name: result.error_message or error_code(result.error_code).message
                for result in response.topics
                if result.error_code
            }
        finally:
            self._creating.difference_update(names)
        if failed:
            logger.warning("internal topics of a streams group were not created", topics=sorted(failed)[:3])
            self._remember(failed, self._clock.now_ms() + remember_ms)

    def _remember(self, failed: Mapping[str, str], until_ms: int) -> None:
        for name, message in failed.items():
            self._errors.pop(name, None)
            self._errors[name] = CreationError(message, until_ms)
        while len(self._errors) > MAX_ERRORS:
            del self._errors[next(iter(self._errors))]
