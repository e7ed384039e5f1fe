"""`odradek cluster`: controllers and brokers on this machine."""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import socket
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from broker.clock import SystemClock
from broker.config.sources import Setting, from_assignments, from_environment, load
from broker.disks.lock import DirectoryInUse, DirectoryLock
from cli.actions import Actions
from cli.exits import FAILED, fail
from cli.flags import DATA, LISTEN, Flag, integer
from cli.parser import Parser
from coordinator.cluster.brokers.features import LATEST_METADATA_VERSION, bootstrap_records
from coordinator.cluster.formatting import NewMetadata, random_uuid
from coordinator.cluster.voters import InitialVoter
from programs.cluster.directory import (
    ClusterState,
    WrongShape,
    check_brokers,
    check_controllers,
    plan_shape,
    read_state,
    write_state,
)
from programs.cluster.plan import (
    GIVEN,
    LOOPBACK,
    MAX_BROKERS,
    MAX_CONTROLLERS,
    METRICS,
    FirstAddress,
    NodePlan,
    Shape,
    as_properties,
    check_assignments,
    controller_id,
    first_metrics,
    nodes,
    parse_address,
)
from programs.cluster.process import ChildProcess, start_process, write_line
from programs.cluster.supervisor import STOP_SIGNALS, Supervisor
from programs.command import add_settings
from programs.format.format import NodeFormat, format_node
from protocol.config import ConfigError
from protocol.types import uuid_from_text, uuid_to_text
from storage.disk import Disk, OsDisk
from storage.meta_properties import META_PROPERTIES

MORE: Final = """\
Each process has a port of its own. The command prints "ready HOST:PORT,HOST:PORT,…" on standard output once all brokers
serve. Log lines go to standard error, each after the name of its process. A process that dies is started again. SIGTERM
and SIGINT stop the brokers, which hand over their leadership, and then the controllers; a second signal kills
all processes. The data and the ids survive restarts. `odradek cluster describe` and `quorum` show a running cluster.

Options have the names that Apache Kafka gives them, and go to every process: --set, or the environment
(KAFKA_LOG_RETENTION_MS=60000). Internal topics have a replica on each broker, at most three; for your own topics:
  --set default.replication.factor=3 --set min.insync.replicas=2
Metrics of each process, of the first controller at port 9404, of broker 1 at 9405, and so on:
  --set odradek.metrics.listener=127.0.0.1:9404
"""


def declare(actions: Actions) -> None:
    actions.only(
        run_cluster,
        options=_options,
        examples=(
            "odradek cluster",
            "odradek cluster --controllers 3 --brokers 3",
            "odradek cluster --brokers 5 --data /var/lib/odradek-cluster --listen 0.0.0.0:9092",
            'odradek cluster --brokers 3 --data "$(mktemp -d)" --listen 127.0.0.1:0',
        ),
        more=MORE,
        exit_codes="0 stopped, 1 cannot start, 2 wrong arguments or configuration",
    )


def _options(parser: Parser) -> None:
    Flag(("--brokers",), "number of brokers", "N", integer).add(parser, default=3)
    Flag(("--controllers",), "number of controllers; with three, any of them may fail", "N", integer).add(
        parser, default=1
    )
    DATA.add(parser, default="cluster", help="directory of the cluster, created if missing")
    first = "address of the first broker; the others have the next ports; port 0 picks free ports"
    LISTEN.add(parser, default="127.0.0.1:9092", help=first)
    add_settings(parser)


def run_cluster(options: argparse.Namespace) -> int:
    """Runs a cluster until it is stopped. Returns the exit code."""
    try:
        return _run(options, OsDisk())
    except DirectoryInUse:
        return fail(FAILED, f"{options.data} is in use: another `odradek cluster` runs there")
    except (WrongShape, PortRefused) as error:
        return fail(FAILED, str(error))


def _run(options: argparse.Namespace, disk: Disk) -> int:
    if not 1 <= options.brokers <= MAX_BROKERS:
        raise ConfigError(f"--brokers {options.brokers}: a cluster has from 1 to {MAX_BROKERS}")
    if not 1 <= options.controllers <= MAX_CONTROLLERS:
        raise ConfigError(f"--controllers {options.controllers}: a cluster has from 1 to {MAX_CONTROLLERS}")
    if "," in options.data:
        raise ConfigError(f"--data {options.data}: a comma separates directories in log.dirs")
    settings = from_assignments(options.assignments)
    check_assignments([setting.name for setting in settings])
    given = [*from_environment(os.environ), *settings]
    metrics = first_metrics(last(given, METRICS), options.brokers, options.controllers)
    settings = [setting for setting in settings if setting.name != METRICS]
    data = os.path.abspath(options.data)
    lock = DirectoryLock(data)
    try:
        plans = _prepare(options, data, metrics, disk)
        check_ports(plans)
        environment = child_environment(os.environ)
        broker = next(plan for plan in plans if not plan.is_controller)
        identity = from_assignments([f"{name}={value}" for name, value in broker.settings.items()])
        load(identity, from_environment(environment), settings)  # reports wrong options once, not once per process
        return _supervise(plans, environment, [f"{setting.name}={setting.value}" for setting in settings])
    finally:
        lock.release()


class PortRefused(Exception):
    """An address on which this machine can't listen."""


def check_ports(plans: Sequence[NodePlan]) -> None:
    """Raises PortRefused if a node couldn't listen on its address, so that the operator gets one line instead of the
    log lines of every process."""
    for plan in plans:
        host, _, port = plan.settings["listeners"].rpartition("://")[2].rpartition(":")
        try:
            with open_listener(host.strip("[]"), int(port)):
                pass
        except OSError as error:
            reason = str(error.strerror).partition(" (")[0]  # its rest repeats the address
            raise PortRefused(
                f"{plan.name} cannot listen on {host}:{port}: {reason}; --listen HOST:PORT names another first "
                "port, and port 0 picks free ports"
            ) from None


def open_listener(host: str, port: int) -> socket.socket:
    """Returns a listening socket. Raises OSError."""
    family, *_, address = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    return socket.create_server(address[:2], family=family)


def last(settings: Sequence[Setting], name: str) -> str | None:
    """Returns the value of an option from the last source that sets it; None if no source does."""
    return next((setting.value for setting in reversed(settings) if setting.name == name), None)


def _prepare(options: argparse.Namespace, data: str, metrics: FirstAddress | None, disk: Disk) -> list[NodePlan]:
    """Formats the nodes, writes their option files, and returns them."""
    address = parse_address(options.listen)
    former = read_state(disk, data)
    before = None if former is None else former.shape
    check_brokers(disk, data, options.brokers)
    check_controllers(data, before, options.controllers)
    cluster_id = _new_id() if before is None else before.cluster_id
    directory_ids = [_new_id() for _ in range(options.controllers)]
    shape = plan_shape(before, cluster_id, options.brokers, address, directory_ids)
    write_state(disk, data, ClusterState(shape, former is not None and former.is_formatted))
    plans = nodes(data, address.host, shape, metrics)
    for plan in plans:
        if not disk.exists(os.path.join(plan.directory, META_PROPERTIES)):
            _format(plan, shape, disk)
        disk.write_atomically(plan.file, as_properties(plan.settings).encode(), sync=False)
    write_state(disk, data, ClusterState(shape, True))
    return plans


def _new_id() -> str:
    return uuid_to_text(random_uuid(os.urandom))


def _format(plan: NodePlan, shape: Shape, disk: Disk) -> None:
    directory_ids = shape.directory_ids or [_new_id()]  # none in a directory of an older release: one controller
    voters = tuple(
        InitialVoter(controller_id(index), LOOPBACK, port, uuid_from_text(directory_id))
        for index, (port, directory_id) in enumerate(zip(shape.controller_ports, directory_ids, strict=True))
    )
    node = NodeFormat(
        shape.cluster_id,
        int(plan.settings["node.id"]),
        (plan.directory,),
        plan.directory,
        NewMetadata(bootstrap_records(), LATEST_METADATA_VERSION),
        voters if plan.is_controller else None,
        "CONTROLLER",
    )
    for _ in format_node(
        node, ignore_formatted=False, disk=disk, new_uuid=lambda: random_uuid(os.urandom), now_ms=SystemClock().now_ms()
    ):
        pass  # its lines are for the `format` command


def _supervise(plans: Sequence[NodePlan], environment: Mapping[str, str], assignments: Sequence[str]) -> int:
    extra = [word for text in assignments for word in ("--set", text)]

    async def start(plan: NodePlan) -> ChildProcess:
        command = [sys.executable, "-P", "-m", "odradek", "run", plan.file, *extra]
        return await start_process(plan.name, command, environment, write_line)

    async def supervise() -> int:
        supervisor = Supervisor(plans, start, SystemClock(), random.random)
        for number in STOP_SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, supervisor.signalled, number)
        return await supervisor.run()

    return asyncio.run(supervise())


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of a node's process: without the options that the command sets, and with this process's
    module path."""
    given = {
        setting.source.removeprefix("environment ")
        for setting in from_environment(environ)
        if setting.name in (*GIVEN, METRICS)
    }
    rest = {name: value for name, value in environ.items() if name not in given}
    return {**rest, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
