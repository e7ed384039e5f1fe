"""Kerberos realms with a real KDC (MIT's, from Debian's packages), one of which trusts the other."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Final

import pytest

from tests.interop.processes import Server, free_port

OWN: Final = "ODRADEK.TEST"
OTHER: Final = "OTHER.TEST"
"""The realm whose principals get tickets for services of OWN."""

PATIENCE_S: Final = 60
SKEW_S: Final = 2
"""Maximum difference of clocks; a ticket is accepted for this long after its end."""

PACKAGES: Final = "krb5-kdc krb5-admin-server krb5-user libkrb5-dev libsasl2-modules-gssapi-mit"
SYSTEM_PATH: Final = f"{os.environ['PATH']}:/usr/sbin:/sbin"

CLIENT_CONFIG: Final = """\
[libdefaults]
default_realm = {own}
dns_lookup_realm = false
dns_lookup_kdc = false
dns_canonicalize_hostname = false
rdns = false
udp_preference_limit = 1
clockskew = {skew}
[realms]
{own} = {{
  kdc = 127.0.0.1:{port}
}}
{other} = {{
  kdc = 127.0.0.1:{port}
}}
[domain_realm]
localhost = {own}
[capaths]
{other} = {{
  {own} = .
}}
"""
KDC_CONFIG: Final = """\
[logging]
kdc = FILE:{folder}/requests.log
admin_server = FILE:{folder}/admin.log
[kdcdefaults]
kdc_listen = 127.0.0.1:{port}
kdc_tcp_listen = 127.0.0.1:{port}
[realms]
{own} = {{
  database_name = {folder}/own
  key_stash_file = {folder}/own.stash
}}
{other} = {{
  database_name = {folder}/other
  key_stash_file = {folder}/other.stash
}}
"""


class Realm:
    """Both realms, from `start` to `stop`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "krb5.conf"
        self._port = free_port()
        self._kdc = Server("krb5kdc", folder / "kdc.log")

    @property
    def environment(self) -> dict[str, str]:
        """Returns the environment variables with which programs know the realms."""
        return {"KRB5_CONFIG": str(self.config), "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf")}

    def start(self) -> None:
        kdc = shutil.which("krb5kdc", path=SYSTEM_PATH)
        if kdc is None:
            pytest.fail(f"there is no KDC on this machine: apt-get install {PACKAGES}")
        fields = {"own": OWN, "other": OTHER, "port": self._port, "folder": self.folder, "skew": SKEW_S}
        self.config.write_text(CLIENT_CONFIG.format(**fields))
        (self.folder / "kdc.conf").write_text(KDC_CONFIG.format(**fields))
        for realm in (OWN, OTHER):
            self._run("kdb5_util", "create", "-s", "-r", realm, "-P", "master", "-W")
            self._ask(realm, f"addprinc -pw between krbtgt/{OWN}@{OTHER}")
        self._kdc.launch([kdc, "-n", "-r", OWN, "-r", OTHER], r"starting\.\.\.", PATIENCE_S, self.environment)
        self._wait()

    def stop(self) -> None:
        self._kdc.kill9()
        self._kdc.forget()

    def add(self, principal: str, realm: str = OWN) -> Path:
        """Creates a principal; returns a file with its key."""
        self._ask(realm, f'addprinc -randkey "{principal}@{realm}"')
        return self.renew(principal, realm)

    def renew(self, principal: str, realm: str = OWN) -> Path:
        """Gives a principal a new key; returns a file with all of its keys."""
        keytab = self.folder / f"{principal.replace('/', '-')}@{realm}.keytab"
        self._ask(realm, f'ktadd -k {keytab} "{principal}@{realm}"')
        return keytab

    def log_in(self, principal: str, keytab: Path, realm: str = OWN, lifetime: str = "1h") -> Path:
        """Gets a ticket, and returns the file with it."""
        cache = self.folder / f"{principal.replace('/', '-')}@{realm}.{lifetime}.ccache"
        self._run("kinit", "-f", "-k", "-t", str(keytab), "-l", lifetime, "-c", str(cache), f"{principal}@{realm}")
        return cache

    def _wait(self) -> None:
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
            except OSError:
                assert self._kdc.is_running, self._kdc.tail()
                assert time.monotonic() < end, self._kdc.tail()
                time.sleep(0.02)  # whether a port is open can only be tried

    def _ask(self, realm: str, query: str) -> None:
        """Runs a query of kadmin, which reports failures only in its output."""
        output = self._run("kadmin.local", "-r", realm, "-q", query)
        assert "while" not in output, output

    def _run(self, *command: str) -> str:
        environment = {**os.environ, **self.environment, "PATH": SYSTEM_PATH}
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, env=environment, check=False
        )
        output = ended.stdout + ended.stderr
        assert not ended.returncode, f"{' '.join(command)}\n{output}"
        return output
