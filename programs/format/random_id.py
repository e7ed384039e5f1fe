"""`odradek random-uuid`, and the random values of `odradek format`."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Final

from cli.actions import Actions
from cli.exits import DONE
from coordinator.cluster.formatting import random_uuid
from protocol.types import Uuid, uuid_to_text

SALT_BYTES: Final = 16


def declare(actions: Actions) -> None:
    actions.only(print_id, examples=("odradek random-uuid",))


def print_id(_: argparse.Namespace) -> int:
    """Prints a new id. Returns the exit code."""
    sys.stdout.write(f"{uuid_to_text(new_uuid())}\n")
    return DONE


def new_uuid() -> Uuid:
    """Draws the id of a cluster or a directory."""
    return random_uuid(os.urandom)


def new_salt() -> bytes:
    """Draws the salt of a SCRAM credential."""
    return os.urandom(SALT_BYTES)
