"""The frames with which fuzzing starts: recorded frames of real clients, and generated frames for versions that no
client sent.

A file in `corpus/` has the frames of one API, one a line, in hexadecimal. `python -m tests.fuzz.corpus DIR` adds the
frames that `pytest --record-frames DIR` recorded: for each version, one frame of each shape, the shortest first.
"""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from protocol.schema import fields_of
from tests.fuzz.drawing import Draw, versions_of
from tests.fuzz.frames import HEADER, frame, head_of, request_of, served
from tests.fuzz.vocabulary import Group, Member, Transactional, Vocabulary

FOLDER: Final = Path(__file__).with_name("corpus")
LONGEST_BYTES: Final = 600
FRAMES_OF_A_VERSION: Final = 8
GENERATED: Final = 4
"""Number of frames for each version that was not recorded."""

Corpus = dict[tuple[int, int], list[bytes]]
"""Frames by API key and version."""


def load() -> Corpus:
    """Returns at least one frame of every served API and version."""
    corpus = recorded()
    nowhere = Vocabulary(
        ["t"], {"t": bytes(range(16))}, [Group("g", [Member("m", 1)])], [Transactional("x", 1, 0)], [b""]
    )
    for key, api in sorted(served().items()):
        for version in versions_of(api.request):
            draw = Draw(random.Random(f"{key}/{version}"), nowhere)
            if not corpus[key, version]:
                corpus[key, version] = [frame(draw.request(api.request, version), version) for _ in range(GENERATED)]
    return dict(corpus)


def recorded() -> Corpus:
    """Returns the corpus in the folder."""
    corpus: Corpus = defaultdict(list)
    for file in sorted(FOLDER.glob("*.hex")):
        for line in file.read_text().split():
            data = bytes.fromhex(line)
            head = head_of(data)
            assert head is not None, file
            corpus[head.key, head.version].append(data)
    return corpus


def add(frames: Iterable[bytes]) -> Corpus:
    """Returns the corpus with these frames: as few as have all shapes."""
    chosen: Corpus = defaultdict(list)
    shapes: dict[tuple[int, int], set[str]] = defaultdict(set)
    for data in sorted(
        {*frames, *(data for one in recorded().values() for data in one)}, key=lambda data: (len(data), data)
    ):
        decoded = request_of(data)
        head = head_of(data)
        if decoded is None or head is None or len(data) > LONGEST_BYTES:
            continue
        place = head.key, head.version
        seen = shape(decoded[0], decoded[1])
        if seen not in shapes[place] and len(chosen[place]) < FRAMES_OF_A_VERSION:
            shapes[place].add(seen)
            chosen[place].append(data)
    return chosen


def shape(value: Any, version: int) -> str:
    """Returns the shape of a request, whatever its values: which fields are null or empty, and the number of items."""
    if isinstance(value, list):
        return f"[{min(len(value), 2)}{shape(value[0], version) if value else ''}]"
    if hasattr(value, "__wire__"):
        return "".join(
            shape(getattr(value, field.name), version)
            for field in fields_of(type(value))
            if version in field.wire.versions
        )
    if value is None:
        return "-"
    return "." if value else "0"


def anonymous(data: bytes) -> bytes:
    """Returns a recorded frame without the client id and the correlation id of its client."""
    size = int.from_bytes(data[HEADER.size - 2 : HEADER.size], "big", signed=True)
    return data[:4] + bytes(4) + b"\x00\x04fuzz" + data[HEADER.size + max(0, size) :]


def save(corpus: Corpus) -> None:
    FOLDER.mkdir(exist_ok=True)
    for file in FOLDER.glob("*.hex"):
        file.unlink()
    lines: dict[int, list[str]] = defaultdict(list)
    for (key, _), frames in sorted(corpus.items()):
        lines[key] += [data.hex() for data in frames]
    for key, frames_of_it in lines.items():
        (FOLDER / f"{served()[key].key.name.lower()}.hex").write_text("\n".join(frames_of_it) + "\n")


def recordings(folder: Path) -> Iterator[bytes]:
    """Yields the frames of the files that the recording proxy wrote."""
    for file in sorted(folder.glob("*.frames")):
        for line in file.read_text().split():
            data = bytes.fromhex(line)
            if len(data) >= HEADER.size:
                yield anonymous(data)


if __name__ == "__main__":
    save(add(recordings(Path(sys.argv[1]))))
