"""Flame graphs of native stacks: turns the output of `perf script` into an SVG for browsers. Pure.

A graph has the frames of the kernel, the interpreter, the compiled core and uvloop, so that it shows where all of a
request's time goes. Python's own functions are missing; py-spy shows them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Final, NamedTuple

Stack = tuple[str, ...]
"""The names of its frames, the outermost first."""

KERNEL: Final = "[kernel.kallsyms]"
UNKNOWN: Final = "[unknown]"

WIDTH, ROW, MARGIN = 1600, 17, 10
NARROWEST: Final = 0.4
"""Minimum width in pixels; narrower boxes can't be seen and are not drawn."""
PIXELS_PER_LETTER: Final = 7.0
MOST_BOXES: Final = 1_200
"""Maximum number of boxes; the widest are drawn. A box takes some two hundred bytes, and a published graph should be
smaller than 300 KB.
"""
LONGEST_NAME: Final = 120

COLOURS: Final = (
    ("kernel", "#e0a458"),
    ("compiled core", "#6a9fb5"),
    ("uvloop", "#90a959"),
    ("interpreter and libraries", "#d28445"),
)
KERNEL_COLOUR, CORE_COLOUR, LOOP_COLOUR, OTHER_COLOUR = (colour for _, colour in COLOURS)


class Frame(NamedTuple):
    """A box of the graph: its first sample is `start`, and it has `depth` boxes below it."""

    name: str
    depth: int
    start: int
    samples: int


def stacks(script: Iterable[str]) -> Iterator[Stack]:
    """Yields the stacks of `perf script --fields comm,tid,ip,sym,dso`, one for each sample."""
    frames: list[str] = []
    for line in script:
        if not line.strip():
            if frames:
                yield tuple(reversed(frames))
            frames = []
        elif line[0].isspace():
            _, name, *rest = line.split()
            if name != UNKNOWN:
                frames.append(f"{name} [k]" if KERNEL in " ".join(rest) else name)
    if frames:
        yield tuple(reversed(frames))


def folded(lines: Iterable[str]) -> Iterator[Stack]:
    """Yields the stacks of folded text (`outer;inner 12`), one for each sample."""
    for line in lines:
        stack, _, count = line.rpartition(" ")
        for _ in range(int(count)):
            yield tuple(stack.split(";"))


def boxes(counts: Mapping[Stack, int]) -> list[Frame]:
    """Returns the boxes of a graph; the callees of a function are side by side, sorted by name."""
    frames: list[Frame] = []
    _add(sorted(counts.items()), 0, 0, frames)
    return frames


def _add(counts: Sequence[tuple[Stack, int]], depth: int, start: int, frames: list[Frame]) -> None:
    first = 0
    while first < len(counts):
        stack, _ = counts[first]
        if len(stack) == depth:  # the function's own time has no box above it
            start += counts[first][1]
            first += 1
            continue
        last = first
        while last < len(counts) and counts[last][0][depth : depth + 1] == stack[depth : depth + 1]:
            last += 1
        samples = sum(count for _, count in counts[first:last])
        frames.append(Frame(stack[depth], depth, start, samples))
        _add(counts[first:last], depth + 1, start, frames)
        start += samples
        first = last


def colour(name: str) -> str:
    """Returns a frame's colour, which shows whose code it is."""
    if name.endswith(" [k]"):
        return KERNEL_COLOUR
    if name.startswith("CPy"):
        return CORE_COLOUR
    return LOOP_COLOUR if name.startswith(("uv_", "__pyx")) else OTHER_COLOUR


def svg(title: str, samples: Iterable[Stack]) -> str:
    """Returns the graph as an SVG; each box shows its name and its share when it is pointed at."""
    counts = Counter(samples)
    total = sum(counts.values()) or 1
    frames = boxes(counts)
    height = (max((frame.depth for frame in frames), default=0) + 4) * ROW
    legend = ", ".join(f'<tspan fill="{shade}">■</tspan> {name}' for name, shade in COLOURS)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" ',
        'font-family="monospace" font-size="11">',
        f'<text x="{MARGIN}" y="{ROW}" font-size="14">{escape(title)}: {total} samples. {legend}</text>',
    )
    scale = (WIDTH - 2 * MARGIN) / total
    widths = sorted((frame.samples for frame in frames), reverse=True)
    narrowest = widths[MOST_BOXES] + 1 if len(widths) > MOST_BOXES else 0
    drawn = (
        _box(frame, scale, total, height)
        for frame in frames
        if frame.samples >= narrowest and frame.samples * scale >= NARROWEST
    )
    return "\n".join((*head, *drawn, "</svg>\n"))


def _box(frame: Frame, scale: float, total: int, height: int) -> str:
    x, width = MARGIN + frame.start * scale, frame.samples * scale
    y = height - (frame.depth + 2) * ROW
    letters = int(width / PIXELS_PER_LETTER)
    label = escape(frame.name[:letters]) if letters > 2 else ""
    name = frame.name if len(frame.name) <= LONGEST_NAME else f"{frame.name[:LONGEST_NAME]}…"
    return (
        f"<g><title>{escape(name)}: {frame.samples / total:.1%}</title>"
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 1}" fill="{colour(frame.name)}"/>'
        f'<text x="{x + 2:.1f}" y="{y + 12}">{label}</text></g>'
    )
