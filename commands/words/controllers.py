"""`odradek cluster controller`: changes the voters of the controllers' quorum (KIP-853, KIP-1312)."""

from __future__ import annotations

from typing import Final

from cli.actions import Actions
from cli.flags import YES, Flag, integer
from cli.parser import Parser
from commands.errors import CommandError, misuse, raise_if
from commands.printing import Row
from commands.session import Session
from commands.state.quorum import QuorumDescription, QuorumReplica, describe_quorum
from protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from protocol.messages.unregister_controller import UnregisterControllerRequest, UnregisterControllerResponse
from protocol.types import uuid_to_text

COLUMNS: Final = ("controller", "directory", "address")
NOT_YET: Final = "odradek: nothing has changed; --yes carries this out"

ADD_HELP: Final = """\
The controller must run and follow the quorum: `odradek cluster quorum` shows it as an observer. Without --yes the plan
is shown. Add or remove one voter at a time."""

REMOVE_HELP: Final = """\
A voter is its node id and its directory. After the loss of a disk remove the lost directory, then add the controller
again. A removed controller still follows the quorum: stop it, and unregister it if it is gone for good. Without --yes
the plan is shown."""

UNREGISTER_HELP: Final = """\
Do this after `remove`, with the controller stopped: a running one would register again. Needs Kafka 4.4."""


def declare(actions: Actions) -> None:
    actions.add(
        "add",
        "make an observing controller a voter",
        add,
        options=_add_options,
        examples=(
            "odradek cluster controller add 103",
            "odradek cluster controller add 103 --address controller-3.example:9093 --yes",
        ),
        more=ADD_HELP,
    )
    actions.add(
        "remove",
        "remove a voter from the quorum",
        remove,
        options=_directory_options,
        examples=("odradek cluster controller remove 101", "odradek cluster controller remove 101 --yes"),
        more=REMOVE_HELP,
    )
    actions.add(
        "unregister",
        "forget a controller that is gone for good",
        unregister,
        options=_controller_options,
        examples=("odradek cluster controller unregister 101 --yes",),
        more=UNREGISTER_HELP,
    )


def _controller_options(parser: Parser) -> None:
    parser.add_argument("controller", type=integer, metavar="ID", help="node id of the controller")
    YES.add(parser, help="carry out the plan, instead of showing it")


def _directory_options(parser: Parser) -> None:
    _controller_options(parser)
    Flag(("--directory",), "the id of its metadata directory, if it has several", "ID").add(parser)


def _add_options(parser: Parser) -> None:
    _directory_options(parser)
    Flag(("--address",), "its address, if the cluster doesn't know it", "HOST:PORT").add(parser)
    Flag(("--listener",), "the name of its listener, with --address", "NAME").add(parser, default="CONTROLLER")


async def add(session: Session) -> int:
    options = session.options
    quorum = await describe_quorum(session.cluster)
    newest = {replica.node: replica for replica in sorted(quorum.observers, key=lambda replica: replica.fetched_ms)}
    observers = quorum.observers if options.directory is not None else list(newest.values())  # a lost disk's is older
    observer = _chosen(session, observers, "observer", quorum)
    if any(voter.node == observer.node for voter in quorum.voters):
        raise CommandError(
            f"controller {observer.node} is a voter with another directory: first `odradek cluster controller remove "
            f"{observer.node}`"
        )
    listeners = _listeners(session, quorum, observer)
    shown = ",".join(f"{listener.host}:{listener.port}" for listener in listeners)
    if options.yes:
        request = AddRaftVoterRequest(
            cluster_id=None,
            timeout_ms=session.cluster.timeout_ms,
            voter_id=observer.node,
            voter_directory_id=observer.directory,
            listeners=listeners,
        )
        answer = await session.cluster.controller(request, AddRaftVoterResponse)
        raise_if(f"controller {observer.node}", answer.error_code, answer.error_message)
    return _show(session, observer, shown, "is a voter" if options.yes else "would become a voter")


async def remove(session: Session) -> int:
    options = session.options
    quorum = await describe_quorum(session.cluster)
    voter = _chosen(session, quorum.voters, "voter", quorum)
    if len(quorum.voters) == 1:
        raise CommandError(f"controller {voter.node} is the only voter: add another one first")
    if options.yes:
        request = RemoveRaftVoterRequest(cluster_id=None, voter_id=voter.node, voter_directory_id=voter.directory)
        answer = await session.cluster.controller(request, RemoveRaftVoterResponse)
        raise_if(f"controller {voter.node}", answer.error_code, answer.error_message)
    listeners = quorum.listeners.get(voter.node, ())
    shown = ",".join(f"{listener.host}:{listener.port}" for listener in listeners)
    return _show(session, voter, shown, "is no longer a voter" if options.yes else "would no longer be a voter")


async def unregister(session: Session) -> int:
    options, node = session.options, session.options.controller
    quorum = await describe_quorum(session.cluster)
    if any(voter.node == node for voter in quorum.voters):
        raise CommandError(f"controller {node} is a voter: first `odradek cluster controller remove {node}`")
    if options.yes:
        request = UnregisterControllerRequest(controller_id=node)
        answer = await session.cluster.controller(request, UnregisterControllerResponse)
        raise_if(f"controller {node}", answer.error_code, answer.error_message)
    change = "is unregistered" if options.yes else "would be unregistered"
    return _show(session, None, "", change)


def _chosen(session: Session, replicas: list[QuorumReplica], role: str, quorum: QuorumDescription) -> QuorumReplica:
    """Returns the replica that the options name. Raises CommandError if there is none, or several."""
    node, directory = session.options.controller, session.options.directory
    of_node = [replica for replica in replicas if replica.node == node]
    matching = [replica for replica in of_node if directory in (None, uuid_to_text(replica.directory))]
    if len(matching) == 1:
        return matching[0]
    if of_node:
        listed = ", ".join(uuid_to_text(replica.directory) for replica in of_node)
        raise misuse(f"controller {node} has the directories {listed}: choose with --directory")
    if any(replica.node == node for replica in quorum.replicas):
        other = "a voter already" if role == "observer" else "an observer, not a voter"
        raise CommandError(f"controller {node} is {other}: see `odradek cluster quorum`")
    there = ", ".join(str(replica.node) for replica in replicas) or "none"
    raise CommandError(
        f"controller {node} is not among the {role}s ({there}): does it run? See `odradek cluster quorum`"
    )


def _listeners(session: Session, quorum: QuorumDescription, observer: QuorumReplica) -> list[Listener]:
    """Returns the listeners at which the other voters reach the new one. Raises CommandError."""
    options = session.options
    if options.address is not None:
        host, _, port = options.address.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise misuse(f"--address {options.address}: expected HOST:PORT, such as controller-3.example:9093")
        return [Listener(name=options.listener, host=host.strip("[]"), port=int(port))]
    known = quorum.listeners.get(observer.node)
    if not known:
        raise misuse(
            f"the cluster doesn't know the address of controller {observer.node} (yet): give it with --address, or "
            "repeat the command once the controller has registered"
        )
    return [Listener(name=listener.name, host=listener.host, port=listener.port) for listener in known]


def _show(session: Session, replica: QuorumReplica | None, address: str, change: str) -> int:
    row: Row = {
        "controller": session.options.controller,
        "directory": None if replica is None else uuid_to_text(replica.directory),
        "address": address or None,
        "result": change,
    }
    status = session.results(COLUMNS, [row])
    if not session.options.yes:
        session.output.note(NOT_YET)
    return status
