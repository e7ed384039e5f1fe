"""`odradek info`: prints the owners of a node's log directories."""

from __future__ import annotations

import argparse
import sys

from cli.actions import Actions
from cli.exits import DONE, FAILED
from coordinator.cluster.formatting import check_owner
from programs.command import add_node_settings
from programs.format.node_config import directories_of, node_config, with_owners_checked
from protocol.types import uuid_to_text
from storage.disk import OsDisk
from storage.meta_properties import MetaProperties, read_meta_properties


def declare(actions: Actions) -> None:
    actions.only(
        with_owners_checked(print_owners),
        options=add_node_settings,
        examples=("odradek info -c broker.properties", "odradek info --set log.dirs=/var/lib/odradek"),
        exit_codes="0 done, 1 a directory is not formatted or has another owner, 2 wrong arguments or configuration",
    )


def print_owners(options: argparse.Namespace) -> int:
    """Prints the owner of each directory. Returns the exit code."""
    config = node_config(options)
    disk = OsDisk()
    properties = {directory: read_meta_properties(disk, directory) for directory in directories_of(config)}
    for directory, owner in properties.items():
        sys.stdout.write(f"{directory}: {_owner(owner)}\n")
    check_owner(properties, config.node_id, None)
    return FAILED if None in properties.values() else DONE


def _owner(owner: MetaProperties | None) -> str:
    if owner is None:
        return "not formatted"
    directory_id = "none yet" if owner.directory_id is None else uuid_to_text(owner.directory_id)
    return f"cluster.id={owner.cluster_id} node.id={owner.node_id} directory.id={directory_id}"
