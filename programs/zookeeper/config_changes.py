"""The notifications in /config/changes: finds those of tools, and the old ones. Runs in the session's thread.

A tool writes an entity's configs first, then the notification; a broker writes both at once, and writes back configs
that it has read. So a notification that is newer than its entity's configs is unread. Source:
kafka.common.ZkNodeChangeNotificationListener, which keeps notifications for 15 minutes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from programs.zookeeper import znodes
from programs.zookeeper.client import Znode, ZookeeperClient
from programs.zookeeper.inputs import CONFIG_TYPES, Bad, ConfigInput
from programs.zookeeper.operations import Delete, Operation
from programs.zookeeper.znodes import BadZnode, Entity

KEPT_MS: Final = 15 * 60 * 1_000


class Changes(NamedTuple):
    """The notifications in /config/changes, sorted."""

    unread: dict[Entity, ConfigInput]
    """The unread changes by entity, with its latest configs."""
    bad: list[Bad]
    old: list[Operation]
    """The deletions of notifications older than KEPT_MS."""

    def names(self, kind: str) -> set[str]:
        """Returns the entities of a kind whose configs a tool has written."""
        return {entity.name for entity in self.unread if entity.kind == kind}


class ConfigChanges:
    """Reads the notifications, and reports each bad notification once."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def read(self, client: ZookeeperClient, now_ms: int) -> Changes:
        """Returns the notifications, sorted, and watches for more."""
        names = sorted(client.children(znodes.CONFIG_CHANGES, watch=True))
        paths = [f"{znodes.CONFIG_CHANGES}/{name}" for name in names]
        self._logged.intersection_update(paths)
        changes, refused = Changes({}, [], []), set[str]()
        for path, node in client.get_all(paths, refused=refused).items():
            if node is not None:
                self._sort(client, path, node, now_ms, changes)
        changes.bad.extend(Bad(path, "may not be read") for path in sorted(refused))
        return changes

    def _sort(self, client: ZookeeperClient, path: str, node: Znode, now_ms: int, changes: Changes) -> None:
        try:
            entity = znodes.entity_of(node.data)
        except BadZnode as error:
            changes.bad.append(Bad(path, str(error)))
            return
        if entity.kind in CONFIG_TYPES:
            self._read_entity(client, path, entity, node, changes)
        elif path not in self._logged:
            self._logged.add(path)
            changes.bad.append(Bad(path, f"configs of {entity.kind} are not accepted from znodes", remove=False))
        if node.created_ms < now_ms - KEPT_MS and entity not in changes.unread:
            changes.old.append(Delete(path))

    @staticmethod
    def _read_entity(client: ZookeeperClient, path: str, entity: Entity, node: Znode, changes: Changes) -> None:
        refused: set[str] = set()
        configs = client.get_all([entity.path], refused=refused).get(entity.path)
        if refused:
            changes.bad.append(Bad(path, f"{entity.path} may not be read"))
        if configs is None or configs.modified_zxid >= node.created_zxid:
            return
        try:
            changes.unread[entity] = ConfigInput(entity, znodes.configs_of(configs.data), configs.version)
        except BadZnode as error:
            changes.bad.append(Bad(path, f"{entity.path} {error}"))
