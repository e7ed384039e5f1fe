"""Counts the results of random requests: a row for each API and version, and each kind of difference once."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from threading import Lock
from typing import Any, Final

from tests.interop.conformance.compare import Difference

SHOWN: Final = 900


class Counts:
    """For each API and version: the number of requests, of equal answers, of allowed differences, and of other
    differences. Episodes that run side by side share it."""

    def __init__(self, examples: int = 0) -> None:
        self.examples = examples
        """Number of printed examples of each allowed kind."""

        self.rows: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
        self.reasons: Counter[str] = Counter()
        """The reasons of answers with allowed differences, by the first difference."""

        self.differences: dict[str, str] = {}
        """The first difference of each kind, and the request that shows it."""

        self._lock = Lock()

    def add(self, name: str, version: int, outcome: str) -> None:
        with self._lock:
            self.rows[name, version][outcome] += 1
            self.rows[name, version]["requests"] += 1

    def explain(self, one: Difference, why: str, where: str) -> None:
        """Counts an allowed difference, and prints the first ones if requested."""
        key = f"{type(one.request).__name__.removesuffix('Request')}: {why}"
        with self._lock:
            self.reasons[key] += 1
            is_shown = self.reasons[key] <= self.examples
        if is_shown:
            print(
                f"meant: {key}\n    {kind_of(one)}\n    v{one.version}, seed {where}: {short(one.request, SHOWN)}",
                flush=True,
            )

    def note(self, one: Difference, where: str) -> bool:
        """Prints a difference of a new kind; returns True if the kind is new."""
        key = kind_of(one)
        with self._lock:
            if key in self.differences:
                return False
            shown = f"v{one.version}, seed {where}: {one.path}: {short(one.request, SHOWN)}"
            self.differences[key] = shown
        print(f"{key}\n    {shown}", flush=True)
        return True

    @property
    def total(self) -> Counter[str]:
        with self._lock:
            return sum(self.rows.values(), Counter())

    def printed(self) -> str:
        return "\n".join(f"{key}\n    {shown}" for key, shown in self.differences.items())

    def table(self) -> str:
        lines = [f"{'request':42} {'requests':>8} {'alike':>8} {'meant':>6} {'different':>9}"]
        for (name, version), row in sorted(self.rows.items()):
            lines.append(
                f"{name.removesuffix('Request'):38} v{version:<3}{row['requests']:>8} {row['alike']:>8} "
                f"{row['meant']:>6} {row['different']:>9}"
            )
        lines += [f"{count:8} meant: {reason}" for reason, count in self.reasons.most_common()]
        total = self.total
        lines.append(
            f"{len(self.rows)} APIs × versions: {total['requests']} requests, {total['alike']} alike, "
            f"{total['meant']} meant, {total['different']} different"
        )
        return "\n".join(lines)


def kind_of(one: Difference) -> str:
    """Returns the kind of a difference, wherever it is in the answer: Apache Kafka's value, then Odradek's."""
    path = re.sub(r"\[\d+\]", "[]", one.path)
    return f"{type(one.request).__name__} {path}: {short(one.theirs)} | {short(one.ours)}"


def short(value: Any, most: int = 200) -> str:
    text = re.sub(r"(.)\1{30,}", r"\1…", re.sub(r"d\d+-", "", repr(value)))
    return text if len(text) < most else f"{text[:most]}…"
