"""Finds the differences between Odradek's and Apache Kafka's answers, field by field. A difference needs a reason."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from tests.interop.conformance.peers import Exchange, Pair, Peer

REQUEST_SHOWN = 600


class Allowed(NamedTuple):
    """An allowed difference: its place (`Request vN .path`), Odradek's and Kafka's values, and the reason."""

    where: str
    reason: str
    ours: object = ...
    theirs: object = ...
    where_so: Callable[[Any, Any], bool] = lambda ours, theirs: True
    """The condition on both values."""

    def covers(self, difference: Difference) -> bool:
        return (
            re.fullmatch(self.where, difference.where) is not None
            and self.ours in (..., difference.ours)
            and self.theirs in (..., difference.theirs)
            and self.where_so(difference.ours, difference.theirs)
        )


class Difference(NamedTuple):
    request: object
    version: int
    path: str
    ours: object
    theirs: object

    @property
    def where(self) -> str:
        return f"{type(self.request).__name__} v{self.version} {self.path}"


Script = Callable[[Peer], None]


class Both:
    """Runs a script against both brokers and compares their answers."""

    def __init__(self, pair: Pair, allowed: tuple[Allowed, ...]) -> None:
        self.pair = pair
        self.allowed = allowed

    def __call__(self, script: Script, *, allowed: tuple[Allowed, ...] = ()) -> None:
        """Runs a script; fails for every difference that is not allowed."""
        unexplained = [
            difference
            for difference in self.differences(script)
            if not any(allowance.covers(difference) for allowance in (*self.allowed, *allowed))
        ]
        assert not unexplained, report(unexplained)

    def each_version(
        self, request: type, script: Callable[[Peer, int], None], *, allowed: tuple[Allowed, ...] = ()
    ) -> None:
        """Runs a script once for each version that both brokers serve."""

        def all_versions(peer: Peer) -> None:
            for version in self.pair.versions(request):
                script(peer, version)

        self(all_versions, allowed=allowed)

    def differences(self, script: Script) -> Iterator[Difference]:
        ours, theirs = self.traces(script)
        assert len(ours) == len(theirs), f"{len(ours)} exchanges, {len(theirs)} with Kafka"
        for one, other in zip(ours, theirs, strict=True):
            assert one.title == other.title
            for path, our, their in compare("", one.answer, other.answer):
                yield Difference(one.request, one.version, path, our, their)

    def traces(self, script: Script) -> tuple[list[Exchange], list[Exchange]]:
        """Runs the script on both brokers at once, because a script may have to wait."""
        peers = (self.pair.odradek, self.pair.apache)
        for peer in peers:
            peer.trace = []
            peer.random_ids = []
        with ThreadPoolExecutor(len(peers)) as pool:
            for done in [pool.submit(script, peer) for peer in peers]:
                done.result()
        ours, theirs = (peer.trace for peer in peers)
        return ours, theirs


def compare(path: str, ours: object, theirs: object) -> Iterator[tuple[str, object, object]]:
    """Returns the innermost differences of two plain values."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in ours:
            yield from compare(f"{path}.{key}", ours[key], theirs[key])
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from compare(f"{path}[{index}]", one, other)
    elif ours != theirs:
        yield path, ours, theirs


def report(differences: list[Difference]) -> str:
    """Returns the differences, each once, with its versions and the first request that shows it."""
    alike: dict[tuple[str, str, str, str], list[Difference]] = defaultdict(list)
    for difference in differences:
        alike[
            type(difference.request).__name__, difference.path, repr(difference.ours), repr(difference.theirs)
        ].append(difference)
    lines, shown = [f"{len(differences)} differences from Apache Kafka"], None
    for (name, path, ours, theirs), same in alike.items():
        if same[0].request is not shown:
            shown = same[0].request
            lines.append(f"\n{str(shown)[:REQUEST_SHOWN]}")
        versions = ",".join(str(version) for version in sorted({difference.version for difference in same}))
        lines.append(f"{name} v{versions} {path}\n    Odradek: {ours}\n    Kafka:   {theirs}")
    return "\n".join(lines)
