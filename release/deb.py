"""Builds a Debian package of the compiled wheel and its dependencies: `make deb`.

The package is for the releases of Debian and Ubuntu whose Python is PYTHON (`DEB_PYTHON=3.12` names another): Debian 12
by default. It has everything that it needs except for Python, below /usr/lib/odradek, where other packages don't see
it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from release.dist import DIST, EPOCH, ROOT, Failed, last_commit, run
from release.library import install_library, version

_major, _minor = os.environ.get("DEB_PYTHON", "3.11").split(".")
PYTHON = int(_major), int(_minor)
SCRIPTS = ROOT / "release" / "deb"
LIBRARY = "usr/lib/odradek"
LAUNCHER = f"""#!/usr/bin/python3 -I
import sys
sys.path.insert(0, "/{LIBRARY}")
from odradek import main
sys.exit(main())
"""
CONTROL = """Package: odradek
Version: {version}
Architecture: {architecture}
Maintainer: The authors of Odradek <odradek@localhost>
Section: net
Priority: optional
Installed-Size: {size_kb}
Depends: python3 (>= {python}), python3 (<< {next_python}), passwd, libc6 (>= 2.28), libstdc++6
Description: Kafka broker in Python
 Stock Kafka clients and tools connect to it unchanged. Its data directory has
 Apache Kafka's format, and moves between the two brokers in both directions.
"""
CONFFILES = ("etc/odradek/broker-1.properties",)


def write(root: Path, name: str, text: str, mode: int = 0o644) -> None:
    """Writes a file of the package."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def lay_out(root: Path) -> None:
    """Fills the package's root: every file where it is installed."""
    install_library(PYTHON, root / LIBRARY)
    write(root, "usr/bin/odradek", LAUNCHER, 0o755)
    for unit in (ROOT / "systemd").glob("*.service"):
        write(root, f"lib/systemd/system/{unit.name}", unit.read_text())
    write(root, "usr/share/doc/odradek/copyright", (ROOT / "LICENSE").read_text())
    for name in CONFFILES:
        write(root, name, (SCRIPTS / Path(name).name).read_text(), 0o640)
    (root / "etc" / "odradek").chmod(0o750)


def describe(root: Path) -> None:
    """Writes what dpkg has to know of the package."""
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
    major, minor = PYTHON
    fields = {
        "version": version(),
        "architecture": run(["dpkg", "--print-architecture"]).strip(),
        "size_kb": size // 1024,
        "python": f"{major}.{minor}",
        "next_python": f"{major}.{minor + 1}",
    }
    write(root, "DEBIAN/control", CONTROL.format(**fields))
    write(root, "DEBIAN/conffiles", "".join(f"/{name}\n" for name in CONFFILES))
    for name in ("postinst", "prerm", "postrm"):
        write(root, f"DEBIAN/{name}", (SCRIPTS / name).read_text(), 0o755)


def build() -> None:
    """Builds dist/'s Debian package. Raises Failed."""
    if not shutil.which("dpkg-deb"):
        raise Failed("dpkg-deb is needed: it is part of Debian and Ubuntu")
    os.environ.setdefault(EPOCH, last_commit())
    with tempfile.TemporaryDirectory(prefix="odradek-deb-") as folder:
        root = Path(folder, "root")
        root.mkdir(mode=0o755)
        lay_out(root)
        describe(root)
        run(["dpkg-deb", "--root-owner-group", "--build", root, DIST])
    for package in DIST.glob("*.deb"):
        print(f"{package.stat().st_size / 1e6:6.2f} MB  dist/{package.name}")


if __name__ == "__main__":
    try:
        build()
    except Failed as error:
        sys.exit(str(error))
