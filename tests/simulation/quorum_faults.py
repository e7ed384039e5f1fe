"""The events of a simulated quorum, drawn from the seed: faults, and requests of operators and clients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Final, TypeVar

from coordinator.quorum.replicas import ReplicaKey
from coordinator.quorum.roles import Role
from coordinator.quorum.rules import RULES, Rules
from coordinator.quorum.voter_set import NO_OFFSET
from tests.simulation.quorum_node import QuorumNode
from tests.simulation.quorum_world import QuorumWorld

Fault = Callable[[QuorumWorld], None]

W = TypeVar("W", bound=QuorumWorld)

MAX_JUMP_MS: Final = 20_000


def propose(world: QuorumWorld) -> None:
    """A client's change; sometimes a former leader takes it, which has not heard of the new leader."""
    leading = [node for node in world.running if node.raft is not None and node.raft.role is Role.LEADER]
    if leading:
        node = world.dice.choice(leading)
        for _ in range(world.dice.choice((1, 1, 2, 5))):
            if node.raft is not None:
                world.propose(node)


def kill(world: QuorumWorld) -> None:
    if world.running:
        world.crash(world.dice.choice(world.running), power=False)


def cut_power(world: QuorumWorld) -> None:
    if world.running:
        world.crash(world.dice.choice(world.running), power=True)


def cut_all_power(world: QuorumWorld) -> None:
    world.counts["all without power"] += 1
    for node in world.running:
        world.crash(node, power=True)
    world.start_all()


def kill_leader(world: QuorumWorld) -> None:
    leader = world.leader()
    if leader is not None:
        world.crash(leader, power=world.dice.random() < 0.5)


def start(world: QuorumWorld) -> None:
    for node in world.nodes.values():
        if node.raft is None and world.dice.random() < 0.7:
            node.start()


def cut_off(world: QuorumWorld) -> None:
    """Cuts a node off, both ways or one way."""
    node_id = world.dice.choice(list(world.nodes))
    both = world.dice.random() < 0.6
    outward = world.dice.random() < 0.5
    for other in world.nodes:
        if other != node_id and (both or world.dice.random() < 0.8):
            if both or outward:
                world.cut.add((node_id, other))
            if both or not outward:
                world.cut.add((other, node_id))


def cut_off_leader(world: QuorumWorld) -> None:
    leader = world.leader()
    if leader is not None:
        for other in world.nodes:
            world.cut |= {(leader.node_id, other), (other, leader.node_id)}


def split(world: QuorumWorld) -> None:
    side = {node_id for node_id in world.nodes if world.dice.random() < 0.5}
    world.cut |= {(one, other) for one in world.nodes for other in world.nodes if (one in side) != (other in side)}


def rejoin(world: QuorumWorld) -> None:
    world.cut.clear()


def disturb(world: QuorumWorld) -> None:
    world.loss = world.dice.choice((0.0, 0.0, 0.05, 0.3))
    world.delay_ms = world.dice.choice((2, 5, 40, 400))
    world.duplicates = world.dice.choice((0.0, 0.05))
    world.damage = world.dice.choice((0.0, 0.0, 0.1))
    world.crashes = world.dice.choice((0.0, 0.0, 0.002, 0.01))


def slow_disk(world: QuorumWorld) -> None:
    world.dice.choice(list(world.nodes.values())).flushes_ms = world.dice.choice((0, 5, 50, 3_000))


def jump(world: QuorumWorld) -> None:
    """A node's clock jumps, or its machine was suspended."""
    node = world.dice.choice(list(world.nodes.values()))
    node.clock_ms += world.dice.randint(1, MAX_JUMP_MS)
    node.tick()
    world.counts["jump"] += 1


def snapshot(world: QuorumWorld) -> None:
    node = world.dice.choice(world.running) if world.running else None
    if node is not None:
        node.make_snapshot(cut=world.dice.random() < 0.8)


def resign(world: QuorumWorld) -> None:
    leader = world.leader()
    if leader is not None and leader.raft is not None:
        leader.raft.resign(leader.raft.epoch, leader.now_ms)
        leader.carry_out()


def stop(world: QuorumWorld) -> None:
    """Stops a node in an orderly way, and starts it again when it may stop."""
    node = world.dice.choice(world.running) if world.running else None
    if node is None or node.raft is None:
        return
    world.counts["stopped"] += 1
    node.raft.shut_down(node.now_ms)
    node.carry_out()
    world.run_for(world.dice.choice((50, 500, 3_000)))
    if node.raft is not None:
        node.stop(power=False)


def add(world: QuorumWorld) -> None:
    leader = world.leader()
    others = [node for node in world.nodes.values() if node.can_vote]
    if leader is not None and leader.raft is not None:
        new = [node for node in others if leader.raft.voters.get(node.node_id) is None]
        world.add_voter(world.dice.choice(new or others), leader)


def remove(world: QuorumWorld) -> None:
    leader = world.leader()
    if leader is None or leader.raft is None:
        return
    keys = [voter.key for voter in leader.raft.voters]
    dead = [key for key in keys if key in world.dead]
    key = world.dice.choice(dead or keys)
    if world.survives_removal(key):
        world.remove_voter(key, leader)


def remove_leader(world: QuorumWorld) -> None:
    leader = world.leader()
    if leader is not None and world.survives_removal(leader.key):
        world.remove_voter(leader.key, leader)


def remove_unknown(world: QuorumWorld) -> None:
    leader = world.leader()
    if leader is not None:
        world.remove_voter(ReplicaKey(leader.node_id, b"another-director"), leader)


def lose_disk(world: QuorumWorld) -> None:
    node: QuorumNode = world.dice.choice(list(world.nodes.values()))
    finds_others = any(location != node.location for location in world.bootstrap)
    is_survived = not world.dead and not world.has_moved and world.survives_loss(node.key)
    if finds_others and not world.is_static and is_survived:
        world.lose_disk(node)


def move(world: QuorumWorld) -> None:
    """A node gets another port; its voter data must follow (UpdateRaftVoter)."""
    node = world.dice.choice(list(world.nodes.values()))
    is_survived = not world.dead and not world.has_moved and world.survives_loss(node.key)
    if node.location not in world.bootstrap and not world.is_static and is_survived:
        world.has_moved = True
        if node.raft is not None:
            node.stop(power=False)
        node.port += 1
        node.start()
        world.counts["moved"] += 1


def upgrade(world: QuorumWorld) -> None:
    leader = world.leader()
    if leader is not None and leader.raft is not None and not leader.raft.kraft_version:
        problem = leader.raft.upgrade(1, leader.now_ms)
        world.counts["upgraded" if problem is None else "upgrade rejected"] += 1
        leader.carry_out()


FAULTS: Final[tuple[tuple[Fault, int], ...]] = (
    (propose, 30),
    (start, 14),
    (rejoin, 8),
    (kill, 4),
    (cut_power, 4),
    (kill_leader, 4),
    (cut_all_power, 2),
    (cut_off, 4),
    (cut_off_leader, 3),
    (split, 3),
    (disturb, 5),
    (slow_disk, 2),
    (jump, 2),
    (snapshot, 6),
    (resign, 2),
    (stop, 1),
    (add, 4),
    (remove, 3),
    (remove_leader, 1),
    (remove_unknown, 1),
    (lose_disk, 1),
    (move, 1),
    (upgrade, 2),
)
"""The events, and their relative frequencies."""

KINDS: Final = [fault for fault, weight in FAULTS for _ in range(weight)]


def simulate(seed: int, steps: int, rules: Rules = RULES, kind: type[QuorumNode] = QuorumNode) -> QuorumWorld:
    """Runs a quorum through faults, and checks it."""
    return run(QuorumWorld(seed, rules, kind), steps, KINDS)


def run(world: W, steps: int, kinds: Sequence[Callable[[W], None]]) -> W:
    """Runs the world through faults of these kinds, and checks it."""
    for node in world.nodes.values():
        if node.node_id <= len(world.voter_sets.get(NO_OFFSET, world.static_voters)) or world.dice.random() < 0.4:
            node.start()
    world.run_for(world.dice.choice((0, 500, 3_000)))
    for _ in range(steps):
        fault = world.dice.choice(kinds)
        world.counts[fault.__name__] += 1
        fault(world)
        world.run_for(world.dice.choice((0, 1, 10, 100, 700, 2_500)))
    world.settle()
    return world


def simulate_restored(seed: int, steps: int, rules: Rules = RULES) -> QuorumWorld:
    """Runs a quorum in which a majority starts from old copies of its disks, as no protocol survives."""
    world = QuorumWorld(seed, rules)
    world.start_all()
    world.run_for(3_000)
    copies = {node_id: deepcopy(node.disk) for node_id, node in world.nodes.items()}
    for _ in range(steps):
        propose(world)
        world.run_for(world.dice.choice((10, 100, 700)))
    world.is_restored = True
    for node_id in world.dice.sample(sorted(world.nodes), len(world.nodes) - 1):
        node = world.nodes[node_id]
        node.stop(power=False)
        node.disk = copies[node_id]
        node.start()
    for _ in range(steps):
        propose(world)
        world.run_for(world.dice.choice((10, 100, 700, 2_500)))
    return world


def simulate_hasty(seed: int, rules: Rules = RULES) -> QuorumWorld:
    """Runs a quorum whose operator removes a second voter, because the removal of the first isn't answered in time."""
    world = QuorumWorld(seed, rules)
    world.start_all()
    world.run_for(5_000)
    leader = world.leader()
    if leader is not None and leader.raft is not None and leader.raft.kraft_version and len(leader.raft.voters) > 3:
        keys = [voter.key for voter in leader.raft.voters if voter.key != leader.key]
        cut_off_leader(world)
        world.remove_voter(keys[0], leader)
        world.run_for(2_100)
        world.remove_voter(keys[1], leader)
        world.counts["hasty"] += 1
    world.settle()
    return world
