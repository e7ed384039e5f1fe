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
from commands.errors import misuse
from commands.session import Session
from commands.state.live import CLIENT_COLUMNS, GROUP_COLUMNS, TOPIC_COLUMNS, ClusterSample, View, screen, view
from commands.state.sampling import sample

ENTER_SCREEN: Final = "\x1b[?1049h\x1b[?25l"
LEAVE_SCREEN: Final = "\x1b[?25h\x1b[?1049l"
"""Escape sequences that enter the terminal's alternate screen without a cursor, and leave it."""
HOME: Final = "\x1b[H"
END_OF_LINE: Final = "\x1b[K"
END_OF_SCREEN: Final = "\x1b[J"

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
