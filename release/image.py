"""Builds the image `odradek` with docker or podman: `make image`.

Everything that is installed comes from dist/image/: the compiled wheel that `make dist` built for the image's Python,
and its locked dependencies. `BASE=NAME` names another base image, with a Python of the same version. `BASE=debian`
makes a base of Debian's packages with mmdebstrap, where no registry of images can be reached. docker/slim.sh removes
what a broker doesn't use from any base.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from release.dist import DIST, Failed, run
from release.library import install_library, version

PYTHON = (3, 11)
"""The version of the base's Python."""

LIBRARY = DIST / "image"
BASE = "BASE"
DEBIAN, DEBIAN_BASE = "debian", "localhost/odradek-base"
SOURCES = Path("/etc/apt/sources.list.d/debian.sources")
DOCS = ("--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-include=/usr/share/doc/*/copyright")


def engine() -> str:
    """Returns docker or podman, whichever works here. Raises Failed."""
    for name in ("docker", "podman"):
        if shutil.which(name) and not subprocess.run([name, "info"], capture_output=True, check=False).returncode:
            return name
    raise Failed("neither `docker info` nor `podman info` works here")


def composer() -> list[str]:
    """Returns the command that starts the services of a compose file. Raises Failed."""
    for words in (["docker", "compose"], ["podman-compose"]):
        if (
            shutil.which(words[0])
            and not subprocess.run([*words, "version"], capture_output=True, check=False).returncode
        ):
            return words
    raise Failed("neither `docker compose version` nor `podman-compose version` works here")


def gather() -> None:
    """Fills dist/image/ with everything to install. Raises Failed."""
    shutil.rmtree(LIBRARY, ignore_errors=True)
    install_library(PYTHON, LIBRARY)


def make_base(program: str) -> str:
    """Makes a base image of Debian's packages, and returns its name."""
    with tempfile.TemporaryDirectory(prefix="odradek-base-") as folder:
        archive = Path(folder, "base.tar")
        what = ["--variant=essential", "--include=python3,libstdc++6", *DOCS]
        run(["mmdebstrap", "--mode=root", *what, "bookworm", archive, *([SOURCES] if SOURCES.exists() else [])])
        run([program, "import", archive, DEBIAN_BASE])
    return DEBIAN_BASE


def build() -> None:
    """Builds and tags the image. Raises Failed."""
    program = engine()
    gather()
    base = os.environ.get(BASE, "")
    if base == DEBIAN:
        base = make_base(program)
    arguments = ["--build-arg", f"VERSION={version()}", *(["--build-arg", f"BASE={base}"] if base else [])]
    if program == "podman":
        arguments += ["--format", "docker"]  # OCI's format has no health check
    tags = ["-t", f"odradek:{version()}", "-t", "odradek"]
    print(run([program, "build", "-f", "docker/Dockerfile", *arguments, *tags, "."]))
    size = int(run([program, "image", "inspect", "--format", "{{.Size}}", "odradek"]))
    print(f"odradek:{version()}, {size / 1e6:.0f} MB unpacked, built by {program}")


if __name__ == "__main__":
    try:
        build()
    except Failed as error:
        sys.exit(str(error))
