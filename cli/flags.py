"""The flags that several commands have. A concept has one spelling, metavar, type and meaning in every command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from cli.durations import parse_duration


class Flag(NamedTuple):
    """A flag: its names, its help and, unless it is a switch, the metavar or the choices of its value."""

    names: tuple[str, ...]
    help: str
    metavar: str = ""
    parse: Callable[[str], object] = str
    choices: Sequence[str] = ()
    dest: str | None = None

    @property
    def is_switch(self) -> bool:
        return not self.metavar and not self.choices

    def add(
        self,
        container: argparse._ActionsContainer,
        *letters: str,
        help: str = "",
        default: object = None,
        required: bool = False,
        repeatable: bool = False,
    ) -> None:
        """Adds the flag to a parser, or to a group of its options. `letters` are further names; `help` replaces the
        flag's own help, if the flag has a narrower meaning in this command. A default of -1 stands for the brokers'
        default."""
        text = (help or self.help) + (f"; default: {default}" if default not in (None, "", -1) else "")
        names = (*letters, *self.names)
        dest = self.dest or self.names[-1].lstrip("-").replace("-", "_")
        if self.is_switch:
            container.add_argument(*names, dest=dest, action="store_true", help=text)
            return
        container.add_argument(
            *names,
            dest=dest,
            action="append" if repeatable else "store",
            type=self.parse,
            default=[] if repeatable else default,
            choices=self.choices or None,
            metavar=self.metavar or None,
            help=f"{text}; repeatable" if repeatable else text,
            required=required,
        )


def integer(text: str) -> int:
    """Returns a whole number. Raises ArgumentTypeError."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def count(text: str) -> int:
    """Returns a whole number that isn't negative. Raises ArgumentTypeError."""
    if (found := integer(text)) < 0:
        raise argparse.ArgumentTypeError(f"{text}: expected 0 or more")
    return found


def positive(text: str) -> int:
    """Returns a whole number above 0. Raises ArgumentTypeError."""
    if (found := integer(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected 1 or more")
    return found


def number(text: str) -> float:
    """Returns a number. Raises ArgumentTypeError."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def duration(text: str) -> int:
    """Returns the milliseconds of a duration. Raises ArgumentTypeError."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


BOOTSTRAP: Final = Flag(("-b", "--bootstrap"), "bootstrap brokers, separated by commas", "HOST:PORT")
PROFILE: Final = Flag(("--profile",), "settings of a profile in ~/.config/odradek/profiles.toml", "NAME")
CONFIG: Final = Flag(
    ("--config",), "settings of a properties file: server.properties or client.properties", "FILE", dest="config_file"
)
SET: Final = Flag(("-X", "--set"), "a setting of the broker or the client", "NAME=VALUE", dest="assignments")
OUTPUT: Final = Flag(
    ("-o", "--output"), "output format; default: table on a terminal, else json", choices=("table", "json")
)
YES: Final = Flag(("-y", "--yes"), "do it without asking for confirmation")
ALL: Final = Flag(("--all",), "all of them")
DRY_RUN: Final = Flag(("--dry-run",), "validate only, change nothing")

TOPIC: Final = Flag(("--topic",), "name of a topic", "TOPIC")
TOPIC_PARTITIONS: Final = Flag(("--topic",), "only this topic, or these partitions of it", "TOPIC[:PARTITION,…]")
PARTITION: Final = Flag(("-p", "--partition"), "only this partition", "N", integer)
PARTITIONS: Final = Flag(("-p", "--partitions"), "number of partitions of a new topic", "N", positive)
REPLICAS: Final = Flag(("-r", "--replicas"), "number of replicas of each partition", "N", positive)
ASSIGN: Final = Flag(("--assign",), "brokers of a partition's replicas, the leader first", "PARTITION:BROKER,BROKER…")
TOPIC_CONFIG: Final = Flag(("-c", "--topic-config"), "a config of the topic", "NAME=VALUE", dest="configs")
UNSET: Final = Flag(("--unset",), "a name whose value is removed", "NAME")
INTERNAL: Final = Flag(("--internal",), "also the cluster's internal topics")
TO_TOPIC: Final = Flag(("--to-topic",), "topic to write to", "TOPIC")
PATTERN: Final = Flag(("--pattern",), "all topics whose whole name matches", "REGEX")
TOPICS_HELP: Final = "a name, or a glob such as 'orders-*'"

GROUP: Final = Flag(("-g", "--group"), "name of a group", "GROUP")
USER: Final = Flag(("--user",), "name of a user", "USER")
OWNER: Final = Flag(("--owner",), "owner of delegation tokens", "User:NAME")
MECHANISM: Final = Flag(("--mechanism",), "SASL mechanism of the password", choices=("SCRAM-SHA-256", "SCRAM-SHA-512"))
TRANSACTIONAL_ID: Final = Flag(("--transactional-id",), "transactional id of a producer", "ID")
ZOOKEEPER: Final = Flag(("--zookeeper",), "the brokers' zookeeper.connect", "HOST:PORT/PATH")

FROM: Final = Flag(("--from",), "first position to read", "POSITION", dest="start")
UNTIL: Final = Flag(("--until",), "stop before this position", "POSITION")
TO: Final = Flag(("--to",), "new start or new committed position", "POSITION")
COUNT: Final = Flag(("-n", "--count"), "stop after N", "N", count)
OLDER_THAN: Final = Flag(("--older-than",), "age of a transaction that hangs", "DURATION", duration)
WAIT: Final = Flag(("--wait",), "wait until it is done, at most this long", "DURATION", duration)
WINDOW: Final = Flag(("--window",), "length of the windows that are counted", "DURATION")
FORMAT: Final = Flag(("-f", "--format"), "layout of a record, as described above", "FORMAT")
JSON: Final = Flag(("-J", "--json"), "records are lines of JSON with kcat's names")

DATA: Final = Flag(("--data",), "directory of the data, created if missing", "DIR")
LISTEN: Final = Flag(("--listen",), "address to listen on; port 0 is any free port", "HOST:PORT")
STORE: Final = Flag(("--store",), "store that `odradek pipeline load` or `stream` wrote", "DIR")
OUT: Final = Flag(("--out",), "directory to write to", "DIR")
CATALOG: Final = Flag(
    ("--catalog",), "catalog of Iceberg tables: DIR, jdbc:sqlite:FILE, jdbc:postgresql:…, http://…", "URI"
)
WAREHOUSE: Final = Flag(("--warehouse",), "folder of the tables of a JDBC catalog; name for a REST catalog", "DIR")
TABLE: Final = Flag(("--table",), "table of the topic; default: kafka.TOPIC", "NAMESPACE.TABLE")
BRANCH: Final = Flag(("--branch",), "branch of the table; default: main", "BRANCH")

FLAGS: Final = tuple(flag for flag in tuple(globals().values()) if isinstance(flag, Flag))
"""All flags of this table."""
