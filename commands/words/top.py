"""`odradek top`: a live screen of topics, groups and clients."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from cli.actions import Actions
from cli.flags import COUNT, INTERNAL, Flag, duration
from client.clock import SystemClock, done_by
from commands.client.cluster_client import ClusterClient, outcome
from commands.errors import CommandError, misuse
from commands.groups.facts import all_places, group_facts, has_lag
from commands.groups.listing import list_groups
from commands.records.positions import bounds
from commands.session import Session
from commands.state.live import CLIENT_COLUMNS, GROUP_COLUMNS, TOPIC_COLUMNS, ClusterSample, View, screen, view
from protocol.errors import ErrorCode

ENTER_SCREEN: Final = "\x1b[?1049h\x1b[?25l"
LEAVE_SCREEN: Final = "\x1b[?25h\x1b[?1049l"
"""Escape sequences that enter the terminal's alternate screen without a cursor, and leave it."""
HOME: Final = "\x1b[H"
END_OF_LINE: Final = "\x1b[K"
END_OF_SCREEN: Final = "\x1b[J"

UNSHOWN: Final = (ErrorCode.GROUP_ID_NOT_FOUND.name, ErrorCode.GROUP_AUTHORIZATION_FAILED.name)
"""Errors of groups that are not shown: deleted since they were listed, or not authorized."""

QUIT: Final = b"qQ\x03\x04"
"""The keys that end the command: q, Ctrl-C, Ctrl-D."""


def declare(actions: Actions) -> None:
    actions.only(
        top,
        concurrent=True,
        options=_options,
        examples=("odradek top -n 1", "odradek top --every 200ms -n 2 -o table"),
        more="On a terminal it fills the screen until q is pressed; with -n it prints the samples below each other. "
        "Elsewhere each sample is a line of JSON.",
    )


def _options(parser: argparse.ArgumentParser) -> None:
    Flag(("--every",), "time between samples", "DURATION", duration).add(parser, default="2s")
    COUNT.add(parser, help="stop after N samples")
    INTERNAL.add(parser)


async def top(session: Session) -> None:
    options = session.options
    every_ms: int = options.every
    if options.count is not None and options.count < 1:
        raise misuse(f"-n {options.count}: expected a number of samples, 1 or more")
    has_screen = sys.stdout.isatty() and not session.output.is_json and options.count is None
    clock = SystemClock()
    quit_pressed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    with full_screen(quit_pressed) if has_screen else _nothing():
        before: ClusterSample | None = None
        left: int | None = options.count
        while True:
            now = await sample(session.cluster, internal=options.internal)
            shown = view(before, now)
            _draw(shown) if has_screen else _print(session, shown)
            before, left = now, None if left is None else left - 1
            deadline_ms = clock.monotonic_ms() + every_ms
            if left == 0 or await done_by(clock, deadline_ms, quit_pressed):
                return


async def sample(cluster: ClusterClient, *, internal: bool) -> ClusterSample:
    """Returns a sample of a cluster."""
    metadata = await cluster.metadata(None)
    topics = [topic for topic in metadata.topics if internal or not topic.is_internal]
    limits, listings = await asyncio.gather(bounds(cluster, all_places(topics)), list_groups(cluster))
    shown = [listing for listing in listings.groups if has_lag(listing)]
    everywhere = all_places(metadata.topics)
    groups = await asyncio.gather(*(outcome(group_facts(cluster, listing, everywhere)) for listing in shown))
    return ClusterSample(
        cluster.clock.now_ms(),
        metadata.cluster_id or "",
        len(metadata.brokers),
        limits.ends,
        limits.starts,
        [facts for facts in groups if not isinstance(facts, CommandError)],
        limits.errors,
        listings.errors,
        {
            listing.group: facts.message
            for listing, facts in zip(shown, groups, strict=True)
            if isinstance(facts, CommandError) and not any(reason in facts.message for reason in UNSHOWN)
        },
    )


def _print(session: Session, shown: View) -> None:
    session.output.document(
        shown.as_document(),
        (
            ("topics", TOPIC_COLUMNS, shown.topics),
            ("groups", GROUP_COLUMNS, shown.groups),
            ("clients", CLIENT_COLUMNS, shown.clients),
        ),
    )
    sys.stdout.flush()


def _draw(shown: View) -> None:
    width, height = os.get_terminal_size(sys.stdout.fileno())
    lines = "".join(f"{line}{END_OF_LINE}\r\n" for line in screen(shown, width, height - 1))
    sys.stdout.write(f"{HOME}{lines}{END_OF_SCREEN}")
    sys.stdout.flush()


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def full_screen(quit_pressed: asyncio.Future[None]) -> Iterator[None]:
    """Enters the terminal's alternate screen, and always leaves it. A key of QUIT completes `quit_pressed`."""
    sys.stdout.write(ENTER_SCREEN)
    try:
        with _keys(quit_pressed) if sys.stdin.isatty() else _nothing():
            yield
    finally:
        sys.stdout.write(LEAVE_SCREEN)
        sys.stdout.flush()


@contextmanager
def _keys(quit_pressed: asyncio.Future[None]) -> Iterator[None]:
    """Reads keys one by one, without echo."""
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    loop = asyncio.get_running_loop()

    def pressed() -> None:
        keys = os.read(terminal, 64)
        if (not keys or set(keys) & set(QUIT)) and not quit_pressed.done():
            quit_pressed.set_result(None)

    tty.setcbreak(terminal)
    loop.add_reader(terminal, pressed)
    try:
        yield
    finally:
        loop.remove_reader(terminal)
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
