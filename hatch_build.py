"""Extends hatchling: builds the wheel's compiled core, and adds links of the package's page.

The core is the modules of the hot path as C extensions, which mypyc compiles from the same sources. The listed modules
are those in which the interpreter's work dominates the profile; pyproject.toml has the list. The wheel has every module
as Python too: it runs where no compiler was available, and in the source tree. `ODRADEK_PURE=1` asks for a wheel
without compiled modules.

`ODRADEK_SOURCE_URL` is the address of the repository that a release is built from: .github/workflows/release.yaml sets
it. The package's page then links there. Without it the package has no links.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PACKAGE = "odradek"
PURE = "ODRADEK_PURE"
SOURCE_URL = "ODRADEK_SOURCE_URL"
RELATIVE_LINK = re.compile(r"(!?)(\[[^\]\n]*\]\()(?!\w+:|#)")
SCRIPT = """
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext

class BesideEachOther(build_ext):
    # All modules are one extension, whose files setuptools would compile one after the other.
    def build_extensions(self):
        compile_in_turn = self.compiler.compile
        def compile_all(sources, **options):
            with ThreadPoolExecutor(os.cpu_count()) as threads:
                made = threads.map(lambda source: compile_in_turn([source], **options), sources)
                return [file for files in made for file in files]
        self.compiler.compile = compile_all
        super().build_extensions()

def build(extensions, target):
    command = BesideEachOther(Distribution({"ext_modules": extensions}))
    command.build_lib, command.build_temp = target, temporary
    command.ensure_finalized()
    command.run()

target, temporary, *modules = sys.argv[1:]
# Without a compiler or Python's headers this fails at once, and mypyc would fail after a minute.
trial = Path(temporary, "trial.c")
trial.write_text("#include <Python.h>\\nPyMODINIT_FUNC PyInit_trial(void) { return NULL; }\\n")
build([Extension("trial", [str(trial)])], temporary)

from mypyc.build import mypycify

options = ["--config-file=", "--ignore-missing-imports", "--explicit-package-bases"]
extensions = mypycify(
    [*options, *modules], opt_level="2", debug_level="0", target_dir=temporary, multi_file=True, strip_asserts=False
)
# The modules call each other, and Python, without the stubs of a shared library, which fill the instruction cache.
for extension in extensions:
    extension.extra_compile_args += ["-fvisibility=hidden", "-fno-plt"]
build(extensions, target)
"""
"""Compiles in a separate process, because setuptools changes distutils and logging in its process."""
LAST_WORDS = 3


class CompiledCore(BuildHookInterface[Any]):
    """The build hook. hatchling finds this class in this file by its base class."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the extension modules to a wheel, unless it is an editable install: its sources are edited."""
        if self.target_name != "wheel" or version == "editable" or os.environ.get(PURE):
            return
        self._target = tempfile.TemporaryDirectory(prefix="odradek-core-")
        target = Path(self._target.name)
        if (reason := compiled(Path(self.root), target, self.config["modules"])) is not None:
            self.app.display_warning(f"the wheel is pure Python, as the core could not be compiled: {reason}")
            return
        files = sorted(path for path in target.rglob("*") if path.is_file())
        build_data["force_include"] |= {str(path): f"{PACKAGE}/{path.relative_to(target)}" for path in files}
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Removes the built modules, which are in the wheel by now."""
        if hasattr(self, "_target"):
            self._target.cleanup()


def compiled(root: Path, target: Path, modules: list[str]) -> str | None:
    """Compiles the modules into `target`, in the same folders as in the tree. Returns the reason if that failed, else
    None."""
    with tempfile.TemporaryDirectory(prefix="odradek-build-") as temporary:
        command = [sys.executable, "-c", SCRIPT, str(target), temporary, *modules]
        ended = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if not ended.returncode:
        return None
    words = f"{ended.stdout}\n{ended.stderr}".strip().splitlines()
    return " | ".join(words[-LAST_WORDS:])


class Links(MetadataHookInterface):
    """The metadata hook. hatchling finds this class in this file by its base class."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Sets the package's readme and links."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        source = os.environ.get(SOURCE_URL, "").rstrip("/")
        tag = f"v{metadata['version']}"
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, source, tag) if source else text}
        metadata["urls"] = urls(source, tag) if source else {}


def urls(source: str, tag: str) -> dict[str, str]:
    """Returns the links beside the package's page."""
    return {
        "Source": source,
        "Documentation": f"{source}/blob/{tag}/docs/index.md",
        "Changelog": f"{source}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{source}/issues",
    }


def absolute(text: str, source: str, tag: str) -> str:
    """Returns Markdown whose links to files of the repository are links to that version of them."""

    def replaced(link: re.Match[str]) -> str:
        return f"{link[1]}{link[2]}{source}/{'raw' if link[1] else 'blob'}/{tag}/"

    return RELATIVE_LINK.sub(replaced, text)
