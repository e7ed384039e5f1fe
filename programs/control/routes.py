"""The paths of the control server and their handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from programs.control.doing import Doing
from programs.control.fault_control import FaultControl
from programs.control.http import ControlAnswer, ControlRequest, RequestError
from programs.control.looking_in import LookingIn
from programs.control.server import ControlConnection

Handle = Callable[[ControlRequest, ControlConnection], Awaitable[ControlAnswer]]
"""(request, its connection) → the answer."""

VERSION: Final = "v1"
ANY: Final = "*"
"""The part of a path that is a name or an id."""


class Routes:
    """The table of paths and their methods."""

    def __init__(self, faults: FaultControl, looking_in: LookingIn, doing: Doing) -> None:
        self._paths: dict[tuple[str, ...], dict[str, Handle]] = {
            ("faults",): {"GET": faults.list_all, "POST": faults.add, "DELETE": faults.remove_all},
            ("faults", ANY): {"GET": faults.describe, "DELETE": faults.remove},
            ("clock",): {"GET": doing.clock, "POST": doing.travel},
            ("requests",): {"GET": looking_in.requests, "DELETE": looking_in.forget},
            ("requests", "recording"): {"GET": looking_in.recording, "POST": looking_in.record},
            ("records",): {"GET": looking_in.records},
            ("groups",): {"GET": looking_in.groups},
            ("groups", ANY): {"GET": looking_in.group},
            ("describe",): {"GET": looking_in.describe},
            ("releases",): {"GET": looking_in.releases},
            ("retention",): {"POST": doing.retention},
            ("compaction",): {"POST": doing.compaction},
            ("flush",): {"POST": doing.flush},
            ("topics",): {"POST": doing.create_topic},
            ("topics", ANY): {"DELETE": doing.delete_topic},
            ("users",): {"POST": doing.add_user},
            ("acls",): {"POST": doing.add_acl},
        }

    async def respond(self, request: ControlRequest, connection: ControlConnection) -> ControlAnswer:
        """Returns the answer to a request. Raises RequestError."""
        path = "/" + "/".join(request.path)
        methods = self._methods(request.path)
        if methods is None:
            first = ", ".join(sorted({f"/{VERSION}/{known_path[0]}" for known_path in self._paths}))
            raise RequestError(404, f"there is no {path}; the paths are {first}")
        handle = methods.get(request.method)
        if handle is None:
            allowed = ", ".join(methods)
            raise RequestError(405, f"{path} has no {request.method}; it has {allowed}", {"Allow": allowed})
        return await handle(request, connection)

    def _methods(self, path: tuple[str, ...]) -> dict[str, Handle] | None:
        """Returns the methods of a path; None if the path doesn't exist."""
        if not path or path[0] != VERSION:
            return None
        named = path[1:]
        return self._paths.get(named) or (self._paths.get((named[0], ANY)) if len(named) == 2 else None)
