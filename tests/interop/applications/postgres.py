"""A PostgreSQL server, from Debian's package postgresql, with logical replication."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from tests.interop.processes import Server, free_port, run

TIMEOUT_S = 120
USER = "postgres"


def programs() -> Path:
    """Returns the folder of the newest installed version's programs."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name))
    assert folders, "PostgreSQL is missing: apt-get install postgresql"
    return folders[-1]


class Postgres(Server):
    """A server without passwords on a port of 127.0.0.1. It refuses to run as root, so that root runs it as USER."""

    def __init__(self, folder: Path) -> None:
        super().__init__("postgres", folder / "postgres.log")
        self.port = free_port()
        self._home = Path(tempfile.mkdtemp(prefix="postgres-", dir="/tmp"))  # USER can't enter a folder of pytest's
        self._as_user: list[str] = []
        if os.getuid() == 0:
            shutil.chown(self._home, USER, USER)
            self._as_user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
        run([*self._as_user, str(programs() / "initdb"), "-A", "trust", "-U", USER, "-D", str(self._home / "data")])

    def start(self) -> None:
        options = {
            "wal_level": "logical", "listen_addresses": "127.0.0.1", "port": str(self.port),
            "unix_socket_directories": "", "max_connections": "20",
        }  # fmt: skip
        settings = [word for key, value in options.items() for word in ("-c", f"{key}={value}")]
        command = [*self._as_user, str(programs() / "postgres"), "-D", str(self._home / "data"), *settings]
        self.launch(command, "database system is ready to accept connections", TIMEOUT_S)

    def sql(self, *statements: str) -> str:
        """Runs statements, each in a transaction of its own, and returns their rows."""
        command = [
            str(programs() / "psql"),
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
            "-U",
            USER,
            "-v",
            "ON_ERROR_STOP=1",
        ]
        commands = [word for statement in statements for word in ("-c", statement)]
        return run([*command, "-q", "-A", "-t", *commands]).stdout.decode()

    def forget(self) -> None:
        """Ends the server and removes its data."""
        super().forget()
        shutil.rmtree(self._home, ignore_errors=True)
