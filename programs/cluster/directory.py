"""The directory of a cluster on one machine: a folder for each node, and a file that describes the cluster.

The file is written before the folders are formatted, and again after the controllers' folders are: so an interrupted
start continues at the next start, and a missing controller's folder is detected.
"""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from broker.disks.lock import LOCK_FILE
from programs.cluster.plan import LOOPBACK, MAX_PORT, FirstAddress, Shape, broker_name, controller_name
from protocol.config import ConfigError
from protocol.types import uuid_from_text, uuid_to_text
from storage.disk import Disk
from storage.meta_properties import META_PROPERTIES

STATE_FILE: Final = "cluster.json"
BROKER: Final = re.compile(r"broker-([1-9]\d{0,8})", re.ASCII)


class WrongShape(Exception):
    """The directory doesn't fit this cluster; the text says why, and what to do."""


class ClusterState(NamedTuple):
    """The content of cluster.json."""

    shape: Shape
    is_formatted: bool
    """True once the controllers' folders are formatted."""


def read_state(disk: Disk, data: str) -> ClusterState | None:
    """Returns the state of the directory's cluster; None for a new cluster. Raises WrongShape, OSError."""
    names = set(disk.listdir(data)) - {LOCK_FILE, f"{STATE_FILE}.tmp"}
    if STATE_FILE not in names:
        if META_PROPERTIES in names:
            raise WrongShape(
                f"{data} has the data of a single broker, not of a cluster; use another directory for --data"
            )
        if names:
            raise WrongShape(
                f"{data} is not empty and has no cluster: {STATE_FILE} is missing; use another directory for --data"
            )
        return None
    path = os.path.join(data, STATE_FILE)
    state = _parse(path, disk.read_file(path))
    for index in range(len(state.shape.controller_ports)):
        folder = os.path.join(data, controller_name(index))
        if state.is_formatted and not disk.exists(os.path.join(folder, META_PROPERTIES)):
            raise WrongShape(
                f"{folder}: the controller's data is missing, and the brokers' folders are useless without it: restore "
                "it, or use another directory for --data"
            )
    return state


def write_state(disk: Disk, data: str, state: ClusterState) -> None:
    """Writes cluster.json, durably. Raises OSError."""
    shape, is_formatted = state
    content = {
        "cluster.id": shape.cluster_id,
        "controller.ports": list(shape.controller_ports),
        "directory.ids": list(shape.directory_ids),
        "broker.ports": list(shape.broker_ports),
        "formatted": is_formatted,
    }
    disk.write_atomically(os.path.join(data, STATE_FILE), f"{json.dumps(content, indent=2)}\n".encode())


def _parse(path: str, text: bytes) -> ClusterState:
    try:
        content = json.loads(text)
        ports = tuple(map(_port, content["broker.ports"]))
        controllers = content["controller.ports"] if "controller.ports" in content else [content["controller.port"]]
        directory_ids = tuple(map(_directory_id, content.get("directory.ids", ())))
        shape = Shape(str(content["cluster.id"]), tuple(map(_port, controllers)), ports, directory_ids)
        if not controllers or len(directory_ids) not in (0, len(controllers)):
            raise ValueError(f"{len(controllers)} controllers with {len(directory_ids)} directories")
        return ClusterState(shape, content["formatted"] is True)
    except (ValueError, KeyError, TypeError) as error:
        raise WrongShape(f"{path} cannot be read: {type(error).__name__}: {error}") from None


def _port(value: object) -> int:
    if not isinstance(value, int) or not 0 < value <= MAX_PORT:
        raise ValueError(f"{value!r} is not a port")
    return value


def _directory_id(value: object) -> str:
    return uuid_to_text(uuid_from_text(str(value)))


def check_controllers(data: str, former: Shape | None, controllers: int) -> None:
    """Raises WrongShape if the directory has another number of controllers: the voters are in the metadata."""
    if former is not None and len(former.controller_ports) != controllers:
        raise WrongShape(
            f"{data} has {len(former.controller_ports)} controllers, but --controllers is {controllers}; the number "
            "stays as it was at the first start"
        )


def check_brokers(disk: Disk, data: str, brokers: int) -> None:
    """Raises WrongShape if the directory has more brokers: their partitions would have no leader."""
    present = sorted(int(match[1]) for match in map(BROKER.fullmatch, disk.listdir(data)) if match)
    if surplus := [node_id for node_id in present if node_id > brokers]:
        last = surplus[-1]
        folder = os.path.join(data, broker_name(last))
        raise WrongShape(
            f"{data} has {last} brokers, but --brokers is {brokers}. To remove broker {last}: start all {last}, "
            f"move its partitions to others (kafka-reassign-partitions), stop, remove {folder}, start with --brokers "
            f"{last - 1}, and unregister the id (kafka-cluster unregister --id {last})"
        )


def plan_shape(
    former: Shape | None, cluster_id: str, brokers: int, address: FirstAddress, directory_ids: Sequence[str]
) -> Shape:
    """Returns the new shape of the cluster. Ports that were picked before stay the same. `directory_ids` are those of a
    new cluster's controllers. Raises ConfigError if there are not enough ports."""
    if address.port and address.port + brokers - 1 > MAX_PORT:
        raise ConfigError(
            f"--listen {address.host}:{address.port}: {brokers} brokers need ports up to {MAX_PORT} and more"
        )
    ports = tuple(range(address.port, address.port + brokers)) if address.port else ()
    if former is None:
        controllers = len(directory_ids)
        free = free_ports(controllers if ports else controllers + brokers, avoided=ports)
        return Shape(cluster_id, tuple(free[:controllers]), ports or tuple(free[controllers:]), tuple(directory_ids))
    if not ports:
        ports = former.broker_ports[:brokers]
        ports += tuple(free_ports(brokers - len(ports), avoided=(*ports, *former.controller_ports)))
    for port in former.controller_ports:
        if port in ports:
            raise ConfigError(f"--listen {address.host}:{address.port}: the controller has port {port}")
    return former._replace(broker_ports=ports)


def free_ports(count: int, avoided: Iterable[int] = ()) -> list[int]:
    """Returns ports that are free at the moment and not in `avoided`."""
    avoided = set(avoided)
    ports: list[int] = []
    sockets = []
    while len(ports) < count:
        sock = socket.socket()
        sockets.append(sock)  # stays open, so that no port is returned twice
        sock.bind((LOOPBACK, 0))
        if (port := sock.getsockname()[1]) not in avoided:
            ports.append(port)
    for sock in sockets:
        sock.close()
    return ports
