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
It checks brokers, controllers, partitions, disks, transactions and groups (groups twice). The exit code is 0 if it
finds no fault, and 1 if it finds one or could not read a part. No API returns which other clients a quota throttles:
with -X client.id=NAME, and as their user, this command is throttled as they are."""

KEYS: Final = ("severity", "subject", "sentence", "command")


def declare(actions: Actions) -> None:
    actions.only(
        "find the faults of a cluster, and the commands that help",
        doctor,
        concurrent=True,
        options=_options,
        examples=("odradek doctor", "odradek doctor --watch 1s --lag 100000 -o json"),
        more=MORE,
    )


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--watch", default="3s", metavar="TIME", help="time between the two checks of groups; default 3s"
    )
    parser.add_argument(
        "--lag", type=int, default=1000, metavar="N", help="lag above which a group is reported; default 1000"
    )
    parser.add_argument(
        "--free",
        type=float,
        default=10.0,
        metavar="PERCENT",
        help="free disk space below which a disk is reported; default 10",
    )
    parser.add_argument("--older-than", default="15m", metavar="TIME", help="age of hanging transactions; default 15m")


async def doctor(session: Session) -> int:
    options = session.options
    watch_ms, hanging_ms = (
        _duration(name, getattr(options, name.replace("-", "_"))) for name in ("watch", "older-than")
    )
    facts = await Examination(session.cluster, watch_ms, hanging_ms).facts()
    listed = findings(facts, DoctorLimits(options.lag, options.free))
    if session.output.is_json:
        session.output.rows(KEYS, [finding._asdict() for finding in listed])
    else:
        _print(session, listed)
        if not listed:
            partitions = sum(len(topic.partitions) for topic in facts.topics)
            session.output.line(
                f"No faults: {len(facts.brokers)} brokers, {partitions} partitions, {len(facts.groups)} groups."
            )
    return FAILED if listed else DONE


def _print(session: Session, listed: list[Diagnosis]) -> None:
    for finding in listed:
        session.output.line(f"{finding.severity.upper():<7}  {finding.sentence}")
        session.output.line(f"         {finding.command}")


def _duration(option: str, text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise misuse(f"--{option}: {error}") from None
