"""`odradek doctor`."""

from __future__ import annotations

import argparse
from typing import Final

from cli.actions import Actions
from cli.exits import DONE, FAILED
from cli.flags import OLDER_THAN, Flag, duration, integer, number
from commands.session import Session
from commands.state.examination import Examination
from commands.state.findings import Diagnosis, DoctorLimits, findings

MORE: Final = """\
It checks brokers, controllers, partitions, disks, transactions and groups (groups twice). The exit code is 0 if it
finds no fault, and 1 if it finds one or could not read a part. No API returns the other clients that a quota
throttles. With --set client.id=NAME and their user, this command is throttled like these clients."""

KEYS: Final = ("severity", "subject", "sentence", "command")


def declare(actions: Actions) -> None:
    actions.only(
        doctor,
        concurrent=True,
        options=_options,
        examples=("odradek doctor", "odradek doctor --watch 1s --lag 100000 -o json"),
        more=MORE,
    )


def _options(parser: argparse.ArgumentParser) -> None:
    Flag(("--watch",), "time between the two checks of groups", "DURATION", duration).add(parser, default="3s")
    Flag(("--lag",), "lag above which a group is reported", "N", integer).add(parser, default=1000)
    Flag(("--free",), "free disk space below which a disk is reported", "PERCENT", number).add(parser, default=10.0)
    OLDER_THAN.add(parser, default="15m")


async def doctor(session: Session) -> int:
    options = session.options
    facts = await Examination(session.cluster, options.watch, options.older_than).facts()
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
