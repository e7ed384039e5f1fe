"""The command lines of `odradek format`, `odradek info` and `odradek random-uuid`."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Final

from broker.clock import SystemClock
from broker.config import BrokerConfig
from broker.config.files import read_file
from broker.config.sources import ConfigProblems, from_assignments, from_environment, from_file, load_only
from broker.disks.lock import DirectoryInUse
from coordinator.cluster.brokers.features import bootstrap_records
from coordinator.cluster.brokers.releases import RELEASES, SCRAM_SINCE, new_cluster_features
from coordinator.cluster.formatting import NewMetadata, WrongOwner, check_owner, random_uuid
from coordinator.cluster.image import METADATA_VERSION
from coordinator.cluster.scram import scram_record
from programs.format.format import AlreadyFormatted, NodeFormat, format_node
from programs.format.node import OPTIONS, QuorumChoice, choose_voters, controller_listener_name
from protocol.config import ConfigError
from protocol.types import Uuid, uuid_to_text
from storage.checkpoint import CorruptCheckpoint
from storage.disk import OsDisk
from storage.meta_properties import MetaProperties, read_meta_properties

FAILED, MISUSED = 1, 2
"""Exit codes: the directories could not be formatted, or are not formatted; the configuration is wrong."""

SALT_BYTES: Final = 16
CLUSTER_ID: Final = re.compile(r"[!-~]{1,256}")
"""A cluster id is in every fetch of the metadata: printable characters without spaces."""

FORMAT = f"""\
Format the log directories of a node: a controller, or a broker with remote controllers. It takes the arguments of
Apache Kafka's `kafka-storage format`, and writes the same files: either broker starts on them. A broker that is its own
controller needs no format: `odradek run` does it.

A controller needs one of:
  --standalone               it is the only voter
  --initial-controllers …    it is one of these voters
  --no-initial-controllers   it joins the voters of a quorum later
or voters in controller.quorum.voters. A broker needs none of them. Without --release-version the metadata is that of
{RELEASES[-1]}. Options come from the file, the environment (KAFKA_NODE_ID=2) and --set, as for `odradek run`.
"""
FORMAT_EXAMPLES = """\
examples:
  odradek format -t "$(odradek random-uuid)" -c controller.properties --standalone
  odradek format -t b2RyYWRlay1pbnRlcm9wLg -c broker.properties
  odradek format -t b2RyYWRlay1pbnRlcm9wLg -c broker.properties --add-scram 'SCRAM-SHA-256=[name=alice,password=secret]'

exit codes: 0 formatted, 1 not formatted, 2 wrong arguments or configuration
"""
INFO = "Print the owners of a node's log directories. The exit code is 1 if one is not formatted, or has another owner."


def main(arguments: Sequence[str]) -> int:
    """Runs the command, and returns the process's exit code."""
    options = parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        return run(options)
    except ConfigProblems as error:
        return _fail(MISUSED, *error.problems)
    except ConfigError as error:
        return _fail(MISUSED, error.message)
    except (AlreadyFormatted, WrongOwner, CorruptCheckpoint, DirectoryInUse, OSError) as error:
        return _fail(FAILED, str(error))


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command's arguments."""
    arguments = argparse.ArgumentParser(prog="odradek")
    commands = arguments.add_subparsers(required=True, metavar="COMMAND")
    raw = argparse.RawDescriptionHelpFormatter
    formatting = commands.add_parser("format", description=FORMAT, epilog=FORMAT_EXAMPLES, formatter_class=raw)
    formatting.set_defaults(run=_format)
    _add_config(formatting)
    formatting.add_argument(
        "-t", "--cluster-id", required=True, metavar="ID", help="the cluster; `odradek random-uuid` draws a new one"
    )
    formatting.add_argument(
        "-g", "--ignore-formatted", action="store_true", help="keep formatted directories, format the others"
    )
    formatting.add_argument("-r", "--release-version", metavar="RELEASE", help="such as 4.2 or 4.2-IV1")
    formatting.add_argument(
        "-f", "--feature", metavar="NAME=LEVEL", action="append", default=[], help="the level of a feature; repeatable"
    )
    formatting.add_argument(
        "-S",
        "--add-scram",
        metavar="CREDENTIAL",
        action="append",
        default=[],
        help="MECHANISM=[name=…,password=…] or MECHANISM=[name=…,iterations=…,salt=…,saltedpassword=…]; repeatable",
    )
    quorum = formatting.add_mutually_exclusive_group()
    quorum.add_argument("-s", "--standalone", action="store_true", help="this controller is the only voter")
    quorum.add_argument("-N", "--no-initial-controllers", action="store_true", help="no voters yet")
    quorum.add_argument(
        "-I", "--initial-controllers", metavar="VOTERS", help="id@host:port:directory,…, the same on every node"
    )
    info = commands.add_parser("info", description=INFO)
    info.set_defaults(run=_info)
    _add_config(info)
    commands.add_parser("random-uuid", description="Print an id for a new cluster or directory.").set_defaults(
        run=_random_uuid
    )
    return arguments


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-c", "--config", metavar="FILE", help="the node's server.properties")
    parser.add_argument(
        "--set", metavar="KEY=VALUE", dest="assignments", action="append", default=[], help="set one option; repeatable"
    )


def _config(options: argparse.Namespace, *, generate_id: bool = False) -> BrokerConfig:
    """Returns the node's configuration; with `generate_id` ZooKeeper assigns the broker id if that is configured."""
    file = from_file(options.config, read_file(options.config)) if options.config is not None else []
    config = load_only(OPTIONS, file, from_environment(os.environ), from_assignments(options.assignments))
    if not config.generates_id:
        return config
    from programs.zookeeper.generated_id import stored_id, with_broker_id  # few brokers need it

    disk = OsDisk()
    return config if not generate_id and stored_id(config, disk) is None else with_broker_id(config, disk, check=False)


def _format(options: argparse.Namespace) -> int:
    choice = QuorumChoice(options.standalone, options.no_initial_controllers, options.initial_controllers)
    if CLUSTER_ID.fullmatch(options.cluster_id) is None:
        raise ConfigError("--cluster-id: an id has only printable characters, without spaces")
    config = _config(options, generate_id=True)
    voters = choose_voters(config, choice, _new_uuid)
    features = new_cluster_features(
        options.release_version, _feature_levels(options.feature), dynamic_quorum=choice.is_dynamic
    )
    if options.add_scram and features[METADATA_VERSION] < SCRAM_SINCE:
        raise ConfigError("SCRAM is only supported in metadata.version 3.5-IV2 or later.")
    records = [*bootstrap_records(features), *(scram_record(text, _new_salt) for text in options.add_scram)]
    node = NodeFormat(
        options.cluster_id,
        config.node_id,
        _directories(config),
        config.metadata_dir,
        NewMetadata(records, features[METADATA_VERSION]),
        voters,
        controller_listener_name(config),
    )
    for line in format_node(
        node,
        ignore_formatted=options.ignore_formatted,
        disk=OsDisk(),
        new_uuid=_new_uuid,
        now_ms=SystemClock().now_ms(),
    ):
        sys.stdout.write(f"{line}\n")
    return 0


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


def _info(options: argparse.Namespace) -> int:
    config = _config(options)
    disk = OsDisk()
    properties = {directory: read_meta_properties(disk, directory) for directory in _directories(config)}
    for directory, owner in properties.items():
        sys.stdout.write(f"{directory}: {_owner(owner)}\n")
    check_owner(properties, config.node_id, None)
    return FAILED if None in properties.values() else 0


def _owner(owner: MetaProperties | None) -> str:
    if owner is None:
        return "not formatted"
    directory_id = "none yet" if owner.directory_id is None else uuid_to_text(owner.directory_id)
    return f"cluster.id={owner.cluster_id} node.id={owner.node_id} directory.id={directory_id}"


def _directories(config: BrokerConfig) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*config.data_dirs, config.metadata_dir)))


def _random_uuid(_: argparse.Namespace) -> int:
    sys.stdout.write(f"{uuid_to_text(_new_uuid())}\n")
    return 0


def _new_uuid() -> Uuid:
    return random_uuid(os.urandom)


def _new_salt() -> bytes:
    return os.urandom(SALT_BYTES)


def _fail(status: int, *problems: str) -> int:
    for problem in problems:
        sys.stderr.write(f"odradek: {problem}\n")
    return status
