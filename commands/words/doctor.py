"""`odradek doctor`."""

from __future__ import annotations

import argparse
from typing import Final

from commands.declaring import Actions, Session
from commands.errors import DONE, FAILED, misuse
from commands.state.examination import Examination
from commands.state.findings import Diagnosis, DoctorLimits, findings
from commands.times import parse_duration

MORE: Final = """\
It looks at brokers, controllers, partitions, disks, transactions and groups, at these twice, and ends with 0 where
nothing is wrong, with 1 where something is, or could not be looked at. No API tells which other clients wait for a
quota: with -X client.id=NAME, and as its user, it waits as they do."""

KEYS: Final = ("severity", "subject", "sentence", "command")


def declare(actions: Actions) -> None:
    actions.only(
        "say what is wrong with a cluster, and which command helps",
        doctor,
        concurrent=True,
        options=_options,
        examples=("odradek doctor", "odradek doctor --watch 1s --lag 100000 -o json"),
        more=MORE,
    )


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--watch", default="3s", metavar="TIME", help="between the two looks at groups; default 3s")
    parser.add_argument("--lag", type=int, default=1000, metavar="N", help="records left from which on; default 1000")
    parser.add_argument("--free", type=float, default=10.0, metavar="PERCENT", help="room on disks; default 10")
    parser.add_argument("--older-than", default="15m", metavar="TIME", help="of a transaction that hangs; default 15m")


async def doctor(session: Session) -> int:
    options = session.options
    watch_ms, hanging_ms = (
        _duration(name, getattr(options, name.replace("-", "_"))) for name in ("watch", "older-than")
    )
    facts = await Examination(session.cluster, watch_ms, hanging_ms).facts()
    listed = findings(facts, DoctorLimits(options.lag, options.free))
    if session.output.is_json:
        session.output.rows(KEYS, [one._asdict() for one in listed])
    else:
        _print(session, listed)
        if not listed:
            partitions = sum(len(topic.partitions) for topic in facts.topics)
            session.output.line(
                f"Nothing is wrong: {len(facts.brokers)} brokers, {partitions} partitions, {len(facts.groups)} groups."
            )
    return FAILED if listed else DONE


def _print(session: Session, listed: list[Diagnosis]) -> None:
    for one in listed:
        session.output.line(f"{one.severity.upper():<7}  {one.sentence}")
        session.output.line(f"         {one.command}")


def _duration(option: str, text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise misuse(f"--{option}: {error}") from None
