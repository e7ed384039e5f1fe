"""`odradek cluster quorum`."""

from __future__ import annotations

from cli.actions import Actions
from cli.times import show_time
from commands.printing import Row
from commands.session import Session
from commands.state.quorum import describe_quorum
from protocol.types import uuid_to_text


def declare(actions: Actions) -> None:
    actions.only(quorum, examples=("odradek cluster quorum", "odradek cluster quorum -o table"))


async def quorum(session: Session) -> None:
    described = await describe_quorum(session.cluster)
    head: dict[str, object] = {
        "leader": described.leader if described.leader >= 0 else None,
        "epoch": described.epoch,
        "high_watermark": described.high_watermark,
    }
    replicas: list[Row] = [
        {
            "node": replica.node,
            "directory": uuid_to_text(replica.directory) if any(replica.directory) else None,
            "role": "leader" if replica.node == described.leader else "follower" if replica.is_voter else "observer",
            "log_end": replica.log_end,
            "lag": max(described.high_watermark - replica.log_end, 0) if replica.log_end >= 0 else None,
            "fetched": show_time(replica.fetched_ms),
            "caught_up": show_time(replica.caught_up_ms),
        }
        for replica in described.replicas
    ]
    columns = ("node", "directory", "role", "log_end", "lag", "fetched", "caught_up")
    session.output.document(
        {**head, "replicas": replicas}, (("quorum", tuple(head), [head]), ("nodes", columns, replicas))
    )
