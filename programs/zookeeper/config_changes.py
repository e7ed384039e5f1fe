"""The notifications of /config/changes: which of them a tool has written, and which are old. In the session's thread.

A tool writes an entity's configs first, then the notification; a broker writes both at once, and has what it has read
written again. So a notification that is newer than the configs that it tells of is one that nobody has read.
Source: kafka.common.ZkNodeChangeNotificationListener, which keeps notifications for a quarter of an hour.
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
    """By the entity: only the configs that are there by now count."""
    bad: list[Bad]
    old: list[Operation]
    """The ends of notifications that have been there long enough."""

    def names(self, kind: str) -> set[str]:
        """Returns the entities of a kind whose configs are a tool's."""
        return {entity.name for entity in self.unread if entity.kind == kind}


class ConfigChanges:
    """Reads the notifications, and tells of each bad one once."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def read(self, client: ZookeeperClient, now_ms: int) -> Changes:
        """Returns what is to be done, and watches for more."""
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
            changes.bad.append(Bad(path, f"configs of {entity.kind} are not taken from znodes", remove=False))
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
