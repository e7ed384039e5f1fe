"""The plan of fuzzing: visits, each a connection with its frames and its way to deliver them, from one seed."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from tests.fuzz.corpus import Corpus
from tests.fuzz.drawing import Draw
from tests.fuzz.frames import frame, head_of, request_of, served, sized, with_correlation_id
from tests.fuzz.large import grow
from tests.fuzz.limits import KEYS, tame
from tests.fuzz.mutations import change, garble, settle
from tests.fuzz.vocabulary import Focus, Vocabulary

FRAMES_OF_A_VISIT: Final = (1, 4, 16, 40, 40)
GARBLED_VISITS: Final = 0.6
"""Share of visits that end with a garbled frame. Such a frame mostly closes the connection, so it is the last of a
short visit."""

FROM_CORPUS: Final = 0.5
TRIES: Final = 5
POOL: Final = 1024
"""Number of frames in a pool from which visits are made. Drawing a frame takes as long as answering it, so each is used
about four times, in other visits and garbled in other ways."""

LARGE_POOL: Final = 128
POOL_VISITS: Final = 512


class Delivery(Enum):
    """The way in which a visit delivers its frames, and reads the answers."""

    PIPELINED = "all at once, every answer read"
    ONE_BY_ONE = "each answered before the next"
    CUT = "the last frame ends somewhere, and so does the connection"
    SLOWLY = "in small pieces"
    UNREAD = "all at once, then reset with the answers unread"
    HALF_CLOSED = "all at once, then no more from this side"
    RESET = "reset while answers are on their way"
    LONGER = "the last length says more than comes"


DELIVERIES: Final = (
    *(Delivery.PIPELINED,) * 6, Delivery.ONE_BY_ONE, Delivery.CUT, Delivery.SLOWLY, Delivery.UNREAD,
    Delivery.HALF_CLOSED, Delivery.RESET, Delivery.LONGER,
)  # fmt: skip


class Visit(NamedTuple):
    """One connection."""

    number: int
    delivery: Delivery
    frames: list[bytes]
    rng: random.Random

    def shown(self, most: int = 12) -> str:
        lines = [f"visit {self.number}: {self.delivery.value}"]
        for data in self.frames[-most:]:
            head = head_of(data)
            api = None if head is None else served().get(head.key)
            name = "?" if head is None or api is None else f"{api.key.name} v{head.version}"
            lines.append(f"    {name}: {data.hex()[:400]}\n        {str(request_of(data))[:500]}")
        return "\n".join(lines)


class Plan:
    """Makes the visits of a seed. The same vocabulary gives the same visit, independent of earlier visits."""

    def __init__(self, seed: int, corpus: Corpus, *, are_large: bool = False) -> None:
        """If the frames `are_large`, each visit has one frame, and the pool has few frames."""
        self.seed = seed
        self.are_large = are_large
        self.pool = LARGE_POOL if are_large else POOL
        self.corpus = corpus
        self.places = sorted(corpus)
        self.pools: dict[int, bytes | None] = {}
        self.pool_of: tuple[int, int] = (-1, -1)

    def visit(self, number: int, vocabulary: Vocabulary) -> Visit:
        rng = random.Random(f"{self.seed}/{number}")
        self.turn_to(number // POOL_VISITS, vocabulary)
        is_garbled = rng.random() < GARBLED_VISITS
        count = 1 if self.are_large else rng.randint(1, 2) if is_garbled else rng.choice(FRAMES_OF_A_VISIT)
        delivery = rng.choice(DELIVERIES)
        frames = [
            self.frame(rng, vocabulary, position, is_garbled and position == count - 1) for position in range(count)
        ]
        return Visit(number, delivery, frames, rng)

    def behaved(self, number: int, vocabulary: Vocabulary) -> Visit:
        """Returns the visit of a well-behaved client: unchanged recorded frames about the present world."""
        rng = random.Random(f"{self.seed}/behaved/{number}")
        frames = [self.recorded(rng, vocabulary, position) for position in range(FRAMES_OF_A_VISIT[-1])]
        return Visit(number, Delivery.PIPELINED, frames, rng)

    def recorded(self, rng: random.Random, vocabulary: Vocabulary, position: int) -> bytes:
        while True:
            decoded = request_of(rng.choice(self.corpus[rng.choice(self.places)]))
            assert decoded is not None
            settle(*decoded, Draw(rng, vocabulary, Focus.draw(rng, vocabulary, wildness=0.0)))
            if tame(*decoded, vocabulary):
                return with_correlation_id(frame(*decoded), position)

    def frame(self, rng: random.Random, vocabulary: Vocabulary, position: int, is_garbled: bool) -> bytes:
        for _ in range(TRIES):
            data = self.pooled(rng.randrange(self.pool), vocabulary)
            if data is not None and is_garbled:
                data = self.garbled(rng, data, vocabulary)
            if data is not None:
                return with_correlation_id(data, position)
        return with_correlation_id(rng.choice(self.corpus[self.places[0]]), position)

    def turn_to(self, pool: int, vocabulary: Vocabulary) -> None:
        """Changes to another pool, or to another world: its frames are drawn again."""
        if self.pool_of != (pool, id(vocabulary)):
            self.pool_of = (pool, id(vocabulary))
            self.vocabulary = vocabulary  # its id is its own as long as it is here
            self.pools.clear()

    def pooled(self, position: int, vocabulary: Vocabulary) -> bytes | None:
        """Returns a frame of the pool, which is drawn when it is first needed."""
        if position not in self.pools:
            rng = random.Random(f"{self.seed}/{self.pool_of[0]}/{position}")
            self.pools[position] = self.try_frame(rng, vocabulary)
        return self.pools[position]

    def try_frame(self, rng: random.Random, vocabulary: Vocabulary) -> bytes | None:
        """Returns a frame; None if it must not be sent, or can't be encoded."""
        key, version = rng.choice(self.places)
        draw = Draw(rng, vocabulary)
        if rng.random() < FROM_CORPUS:
            decoded = request_of(rng.choice(self.corpus[key, version]))
            assert decoded is not None, (key, version)
            request: Any = decoded[0]
            settle(request, version, draw)
            change(request, version, draw)
        else:
            request = draw.request(served()[key].request, version)
        try:
            if self.are_large and not grow(request, version, rng, len(frame(request, version))):
                return None
            return frame(request, version) if tame(request, version, vocabulary) else None
        except (struct.error, OverflowError):  # longer than the version can tell
            return None

    def garbled(self, rng: random.Random, data: bytes, vocabulary: Vocabulary) -> bytes | None:
        changed = garble(rng, data)
        head = head_of(changed)
        if head is None or head.key not in KEYS:
            return changed
        decoded = request_of(changed)
        if decoded is None:
            return changed
        if not tame(*decoded, vocabulary):
            return None
        try:
            return frame(*decoded)
        except (struct.error, OverflowError):
            return None


def wire(frames: Sequence[bytes]) -> bytes:
    return b"".join(map(sized, frames))
