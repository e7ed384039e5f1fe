"""The configuration of the node that `odradek format` and `info` are called for, and the errors of its directories."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

from broker.config import BrokerConfig
from broker.config.files import read_file
from broker.config.sources import from_assignments, from_environment, from_file, load_only
from broker.disks.lock import DirectoryInUse
from cli.exits import FAILED, fail
from coordinator.cluster.formatting import WrongOwner
from programs.format.format import AlreadyFormatted
from programs.format.node import OPTIONS
from programs.zookeeper.generated_id import stored_id, with_broker_id
from storage.checkpoint import CorruptCheckpoint
from storage.disk import OsDisk


def node_config(options: argparse.Namespace, *, generate_id: bool = False) -> BrokerConfig:
    """Returns the node's configuration; with `generate_id` ZooKeeper assigns the broker id if that is configured."""
    file = from_file(options.config_file, read_file(options.config_file)) if options.config_file is not None else []
    config = load_only(OPTIONS, file, from_environment(os.environ), from_assignments(options.assignments))
    if not config.generates_id:
        return config
    disk = OsDisk()
    return config if not generate_id and stored_id(config, disk) is None else with_broker_id(config, disk, check=False)


def directories_of(config: BrokerConfig) -> tuple[str, ...]:
    """Returns the node's log directories and its directory of metadata."""
    return tuple(dict.fromkeys((*config.data_dirs, config.metadata_dir)))


def with_owners_checked(action: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Returns an action that prints a line if a directory is in use, damaged, or another node's."""

    def run(options: argparse.Namespace) -> int:
        try:
            return action(options)
        except (AlreadyFormatted, CorruptCheckpoint, DirectoryInUse, WrongOwner) as error:
            return fail(FAILED, str(error))

    return run
