"""`odradek format`: formats the log directories of a node."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Final

from broker.clock import SystemClock
from cli.actions import Actions
from cli.exits import DONE
from cli.flags import Flag
from cli.parser import Parser
from coordinator.cluster.brokers.features import bootstrap_records
from coordinator.cluster.brokers.releases import RELEASES, SCRAM_SINCE, new_cluster_features
from coordinator.cluster.formatting import NewMetadata
from coordinator.cluster.image import METADATA_VERSION
from coordinator.cluster.scram import scram_record
from programs.command import add_node_settings
from programs.format.format import NodeFormat, format_node
from programs.format.node import QuorumChoice, choose_voters, controller_listener_name
from programs.format.node_config import directories_of, node_config, with_owners_checked
from programs.format.random_id import new_salt, new_uuid
from protocol.config import ConfigError
from storage.disk import OsDisk

CREDENTIALS: Final = "MECHANISM=[name=…,password=…] or MECHANISM=[name=…,iterations=…,salt=…,saltedpassword=…]"
CLUSTER_ID: Final = re.compile(r"[!-~]{1,256}")
"""A cluster id is in every fetch of the metadata: printable characters without spaces."""

MORE: Final = f"""\
The node is a controller, or a broker with remote controllers. The command has the arguments of Apache Kafka's
`kafka-storage format`, and writes the same files: Odradek and Apache Kafka both start on them. A broker that is its own
controller needs no format: `odradek run` does it.

A controller needs one of:
  --standalone               it is the only voter
  --initial-controllers …    it is one of these voters
  --no-initial-controllers   it joins the voters of a quorum later
or voters in controller.quorum.voters. A broker needs none of them. The default of --release-version is {RELEASES[-1]}.
Options come from the file, the environment (KAFKA_NODE_ID=2) and --set, as for `odradek run`.
"""


def declare(actions: Actions) -> None:
    actions.only(
        with_owners_checked(format_directories),
        options=_options,
        examples=(
            'odradek format -t "$(odradek random-uuid)" -c controller.properties --standalone',
            "odradek format -t b2RyYWRlay1pbnRlcm9wLg -c broker.properties",
            "odradek format -t b2RyYWRlay1pbnRlcm9wLg -c broker.properties "
            "--add-scram 'SCRAM-SHA-256=[name=alice,password=secret]'",
        ),
        more=MORE,
        exit_codes="0 formatted, 1 not formatted, 2 wrong arguments or configuration",
    )


def _options(parser: Parser) -> None:
    add_node_settings(parser)
    cluster = Flag(("-t", "--cluster-id"), "the cluster; `odradek random-uuid` draws a new id", "ID")
    cluster.add(parser, required=True)
    Flag(("-g", "--ignore-formatted"), "keep formatted directories, format the others").add(parser)
    Flag(("-r", "--release-version"), "such as 4.2 or 4.2-IV1", "RELEASE").add(parser)
    Flag(("-f", "--feature"), "the level of a feature", "NAME=LEVEL").add(parser, repeatable=True)
    Flag(("-S", "--add-scram"), CREDENTIALS, "CREDENTIAL").add(parser, repeatable=True)
    quorum = parser.add_mutually_exclusive_group()
    Flag(("-s", "--standalone"), "this controller is the only voter").add(quorum)
    Flag(("-N", "--no-initial-controllers"), "this controller joins a quorum later").add(quorum)
    Flag(("-I", "--initial-controllers"), "id@host:port:directory,…, the same on every node", "VOTERS").add(quorum)


def format_directories(options: argparse.Namespace) -> int:
    """Formats the directories of a node. Returns the exit code."""
    choice = QuorumChoice(options.standalone, options.no_initial_controllers, options.initial_controllers)
    if CLUSTER_ID.fullmatch(options.cluster_id) is None:
        raise ConfigError("--cluster-id: an id has only printable characters, without spaces")
    config = node_config(options, generate_id=True)
    voters = choose_voters(config, choice, new_uuid)
    features = new_cluster_features(
        options.release_version, _feature_levels(options.feature), dynamic_quorum=choice.is_dynamic
    )
    if options.add_scram and features[METADATA_VERSION] < SCRAM_SINCE:
        raise ConfigError("SCRAM is only supported in metadata.version 3.5-IV2 or later.")
    records = [*bootstrap_records(features), *(scram_record(text, new_salt) for text in options.add_scram)]
    node = NodeFormat(
        options.cluster_id,
        config.node_id,
        directories_of(config),
        config.metadata_dir,
        NewMetadata(records, features[METADATA_VERSION]),
        voters,
        controller_listener_name(config),
    )
    for line in format_node(
        node, ignore_formatted=options.ignore_formatted, disk=OsDisk(), new_uuid=new_uuid, now_ms=SystemClock().now_ms()
    ):
        sys.stdout.write(f"{line}\n")
    return DONE


def _feature_levels(texts: Sequence[str]) -> dict[str, int]:
    levels: dict[str, int] = {}
    for text in texts:
        name, equals, level = text.partition("=")
        if not equals:
            raise ConfigError(f"Can't parse feature=level string {text}: equals sign not found.")
        if name in levels:
            raise ConfigError(f"--feature {name} is given twice.")
        try:
            levels[name] = int(level)
        except ValueError:
            raise ConfigError(f"Can't parse feature=level string {text}: unable to parse {level} as a short.") from None
    return levels
