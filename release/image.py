"""Builds the image `odradek` with docker or podman: `make image`.

Everything that is installed comes from dist/image/: the compiled wheel that `make dist` built for the image's Python,
and the locked wheels of its dependencies. `BASE=NAME` names another base image, with a Python of the same version.
`BASE=debian` makes a base of Debian's packages with mmdebstrap, where no registry of images can be reached.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from release.dist import DIST, ROOT, Failed, environment_of, interpreters, run

PYTHON = (3, 11)
"""The version of the base's Python."""

WHEELS = DIST / "image"
BASE = "BASE"
DEBIAN, DEBIAN_BASE = "debian", "localhost/odradek-base"
SOURCES = Path("/etc/apt/sources.list.d/debian.sources")
UNUSED = (
    "usr/lib/*/gconv", "usr/lib/*/libperl*", "usr/lib/*/perl*", "usr/bin/perl*", "usr/share/perl*", "usr/share/man",
    "usr/share/locale", "usr/share/info", "usr/share/bug", "usr/share/lintian", "usr/lib/python3.11/pydoc_data",
    "usr/lib/python3.11/ensurepip", "usr/lib/python3.11/turtledemo", "usr/lib/python3.11/idlelib",
    "usr/lib/python3.11/lib2to3", "var/cache", "var/lib/apt", "var/log/*",
)  # fmt: skip
"""Files of Debian's packages that a container never uses. Licences in /usr/share/doc stay."""

DOCS = ("--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-include=/usr/share/doc/*/copyright")


def version() -> str:
    """Returns the version of this tree."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def engine() -> str:
    """Returns docker or podman, whichever works here. Raises Failed."""
    for name in ("docker", "podman"):
        if shutil.which(name) and not subprocess.run([name, "info"], capture_output=True, check=False).returncode:
            return name
    raise Failed("neither `docker info` nor `podman info` works here")


def gather() -> None:
    """Fills dist/image/ with the wheels to install. Raises Failed if `make dist` has not built the image's."""
    tag = f"cp{PYTHON[0]}{PYTHON[1]}"
    built = [*DIST.glob(f"odradek-{version()}-{tag}-*.whl")]
    if not built:
        raise Failed(f"dist/ has no wheel of {version()} for {tag}: run `make dist`")
    programs = environment_of(next(found for found in interpreters() if found.version == PYTHON))
    shutil.rmtree(WHEELS, ignore_errors=True)
    WHEELS.mkdir()
    shutil.copy(built[0], WHEELS)
    download = [programs / "python", "-m", "pip", "download", "-q", "--only-binary", ":all:", "-d", WHEELS]
    run([*download, "--require-hashes", "-r", ROOT / "requirements" / "run.lock"])
    run([*download, "--no-deps", "pip"])


def make_base(program: str) -> str:
    """Makes a base image of Debian's packages, and returns its name."""
    with tempfile.TemporaryDirectory(prefix="odradek-base-") as folder:
        archive = Path(folder, "base.tar")
        hook = "--customize-hook=cd \"$1\" && rm -rf " + " ".join(UNUSED)  # fmt: skip
        what = ["--variant=essential", "--include=python3,libstdc++6", *DOCS, hook]
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
