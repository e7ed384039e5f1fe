"""Measures whether the time of an answer reveals something about a password: `python -m tests.fuzz.password_times
--rounds 2000`.

Valid passwords, invalid passwords and unknown users take turns on a broker in this process. The time is measured from a
client's last byte to the answer, for both messages of SCRAM. It is reported, not checked, because other work of the
machine affects it. If an invalid password and an unknown user differ by less than the spread of either, a client can't
learn which users exist.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from protocol.messages.sasl_handshake import SaslHandshakeRequest
from protocol.sasl.plain import plain_message
from protocol.sasl.scram_client import ScramClient
from tests.broker.inprocess import InProcess
from tests.broker.security.sasl import OPTIONS, add_user
from tests.fuzz.exchanges import in_frame, out_of_frame, request_bytes
from tests.fuzz.strangers import BARE, Visitor

WHO: Final = {
    "right": ("alice", "alice-secret"),
    "wrong": ("alice", "alice-secreT"),
    "wrong from the start, and short": ("alice", "x"),
    "unknown user": ("mallory", "alice-secret"),
}
"""Names and passwords."""


class Taken(NamedTuple):
    """The duration of an answer."""

    message: str
    who: str
    us: float


async def answered(visitor: Visitor, message: bytes) -> tuple[bytes, float]:
    """Returns the answer to a message, and its duration in microseconds."""
    before = time.perf_counter_ns()
    visitor.send(message)
    while not visitor.wire.sent and not visitor.wire.closing:  # noqa: ASYNC110 (the loop is the clock)
        await asyncio.sleep(0)
    taken = (time.perf_counter_ns() - before) / 1000
    return await visitor.answer(), taken


async def log_in(broker: InProcess, mechanism: str, who: str, number: int) -> list[Taken]:
    """Returns the durations of the answers in one exchange."""
    name, password = WHO[who]
    visitor = Visitor(broker, BARE, None)
    await answered(visitor, request_bytes(SaslHandshakeRequest(mechanism=mechanism), 1))
    if mechanism == "PLAIN":
        _, us = await answered(visitor, in_frame(plain_message(name, password)))
        taken = [Taken("PLAIN", who, us)]
    else:
        client = ScramClient(mechanism, name, password, f"nonce{number:08}")
        challenge, first_us = await answered(visitor, in_frame(client.first()))
        final = in_frame(client.final(out_of_frame(challenge)))
        _, us = await answered(visitor, final)
        taken = [Taken(f"{mechanism}, first", who, first_us), Taken(f"{mechanism}, final", who, us)]
    visitor.leave()
    return taken


async def measured(rounds: int, folder: Path) -> list[Taken]:
    """Returns the times of this number of rounds, in each of which all users have a turn, in random order."""
    rng, taken = random.Random(1), []
    async with InProcess(folder, OPTIONS) as broker:
        add_user(broker.server, "alice", "alice-secret")
        for number in range(rounds):
            turns = [(mechanism, who) for mechanism in ("PLAIN", "SCRAM-SHA-256") for who in WHO]
            for mechanism, who in rng.sample(turns, len(turns)):
                taken += await log_in(broker, mechanism, who, number)
    return taken


def lines(taken: list[Taken]) -> Iterator[str]:
    """Yields a line for each message and each kind of user."""
    for message in dict.fromkeys(one.message for one in taken):
        for who in WHO:
            times = [one.us for one in taken if (one.message, one.who) == (message, who)]
            low, middle, high = statistics.quantiles(times, n=4)
            yield f"{message:24} {who:32} median {middle:7.1f} µs, middle half {low:7.1f} to {high:7.1f}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.password_times", description=__doc__)
    parser.add_argument("--rounds", type=int, default=2_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        taken = asyncio.run(measured(options.rounds, Path(folder)))
    print(*lines(taken), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
