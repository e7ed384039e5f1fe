"""Installs what `make dist` built, as its users do: `make test-dist` runs this."""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from release.dist import DIST, Interpreter, environment_of, interpreters
from tests.interop.chroots import clean_system, files_of, inside, there_and_back
from tests.interop.processes import ROOT, run

pytestmark = [pytest.mark.odradek_only, pytest.mark.release]

SMOKE = str(ROOT / "release" / "smoke.py")
COMPILERS = re.compile(r"(^|-)(cc|gcc|g\+\+|c\+\+|clang(\+\+)?|cpp|ld|as)(-|\.|$)")
CLIENTS = ("pytest", "confluent-kafka")
INSTALL_TIMEOUT_S = 600
INTERPRETERS = interpreters()


@pytest.fixture
def without_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Leaves no compiler and no source tree for this test."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for file in Path(folder).glob("*"):
            if not COMPILERS.search(file.name) and not (programs / file.name).is_symlink():
                (programs / file.name).symlink_to(file)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("CC", "/bin/false")
    monkeypatch.delenv("PYTHONPATH", raising=False)


def environment(interpreter: Interpreter, folder: Path) -> Path:
    """Makes an empty virtual environment and returns its programs."""
    run([str(interpreter.path), "-m", "venv", str(folder)], timeout_s=INSTALL_TIMEOUT_S)
    return folder / "bin"


def pip(programs: Path, *words: str) -> None:
    run([str(programs / "python"), "-m", "pip", *words], timeout_s=INSTALL_TIMEOUT_S)


def installed_in(programs: Path) -> set[Path]:
    """Returns the files of an environment without what Python caches."""
    files = programs.parent.rglob("*")
    return {file for file in files if "__pycache__" not in file.parts and file.suffix != ".pyc"}


@pytest.mark.usefixtures("without_compiler")
@pytest.mark.parametrize("interpreter", INTERPRETERS, ids=[interpreter.tag for interpreter in INTERPRETERS])
def test_a_wheel_is_installed_used_and_removed(interpreter: Interpreter, tmp_path: Path) -> None:
    (wheel,) = DIST.glob(f"odradek-*-{interpreter.tag}-*.whl")
    assert re.search(r"[-.]manylinux_2_\d+_", wheel.name)
    programs = environment(interpreter, tmp_path / "venv")
    pip(programs, "install", "--only-binary", ":all:", *CLIENTS)
    version = wheel.name.split("-")[1]
    pip(
        programs, "download", "-q", "--no-deps", "-d", str(tmp_path), "--find-links", str(DIST), "--no-index", "odradek"
    )
    assert (tmp_path / wheel.name).exists(), "pip prefers the compiled wheel to the pure one"
    before = installed_in(programs)
    pip(programs, "install", "--only-binary", ":all:", "--find-links", str(DIST), f"odradek=={version}")
    run([str(programs / "python"), SMOKE, "--compiled", str(programs / "odradek")])
    follow_the_readme(programs, tmp_path)
    pip(programs, "uninstall", "--yes", "odradek")
    assert not [
        file for file in installed_in(programs) - before if "odradek" in file.as_posix().removeprefix(str(tmp_path))
    ]


def readme_test() -> str:
    """Returns the test that the README shows."""
    (text,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    return str(text)


def follow_the_readme(programs: Path, folder: Path) -> None:
    """Runs the test of the README with the installed plugin, and kcat there and back."""
    (folder / "test_orders.py").write_text(readme_test())
    run(
        [str(programs / "python"), "-P", "-m", "pytest", "-q", "--rootdir", str(folder), str(folder / "test_orders.py")]
    )
    words = [str(programs / "odradek"), "run", "--listen", "127.0.0.1:0", "--data", str(folder / "data")]
    there_and_back(words, folder)


def test_a_wheel_is_installed_used_and_removed_in_a_clean_system(tmp_path: Path) -> None:
    with clean_system(tmp_path) as root:
        before = files_of(root)
        system = inside(root)
        version = run([*system, "python3", "-c", "import sys; print(*sys.version_info[:2])"]).stdout.split()
        (interpreter,) = [each for each in INTERPRETERS if each.version == tuple(map(int, version))]
        (wheel,) = DIST.glob(f"odradek-*-{interpreter.tag}-*.whl")
        gather = ["download", "-q", "--only-binary", ":all:", "-d", str(root / "tmp" / "wheels"), str(wheel), *CLIENTS]
        pip(environment_of(interpreter), *gather)
        for name, text in (("smoke.py", Path(SMOKE).read_text()), ("test_orders.py", readme_test())):
            (root / "tmp" / name).write_text(text)

        run([*system, "python3", "-m", "venv", "/opt/venv"], timeout_s=INSTALL_TIMEOUT_S)
        offline = ["/opt/venv/bin/pip", "install", "-q", "--no-index", "--find-links", "/tmp/wheels"]
        run([*system, *offline, "odradek", *CLIENTS], timeout_s=INSTALL_TIMEOUT_S)
        run([*system, "/opt/venv/bin/python", "/tmp/smoke.py", "--compiled", "/opt/venv/bin/odradek"])
        run([*system, "/opt/venv/bin/python", "-P", "-m", "pytest", "-q", "--rootdir", "/tmp", "/tmp/test_orders.py"])
        words = ["/opt/venv/bin/odradek", "run", "--listen", "127.0.0.1:0", "--data", "/tmp/data"]
        there_and_back([*system, *words], tmp_path)
        run([*system, "/opt/venv/bin/pip", "uninstall", "-q", "--yes", "odradek"])
        left = [name for name in files_of(root) - before if "odradek" in name and not is_cached(name)]
        assert not [name for name in left if (root / name).is_file()]  # folders stay, with bytecode that pytest wrote
        shutil.rmtree(root / "opt" / "venv")
        assert not [name for name in files_of(root) - before if not is_cached(name)]


def is_cached(name: str) -> bool:
    """True for bytecode that Python writes beside the modules that it imports."""
    return "__pycache__" in name


@pytest.mark.usefixtures("without_compiler")
def test_the_pure_wheel_is_for_every_other_platform(tmp_path: Path) -> None:
    (wheel,) = DIST.glob("odradek-*-none-any.whl")
    programs = environment(INTERPRETERS[-1], tmp_path / "venv")
    pip(programs, "install", "--only-binary", ":all:", str(wheel))
    run([str(programs / "python"), SMOKE, "--pure", str(programs / "odradek")])


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """Serves dist/ as a simple package index: a folder of files for each project."""
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "odradek").symlink_to(DIST)
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path / "index")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.parametrize("program", ["uvx", "pipx"])
def test_a_runner_starts_it_from_an_index(program: str, index: str, tmp_path: Path) -> None:
    tools = environment_of(INTERPRETERS[0])
    python = str(INTERPRETERS[0].path)
    chosen = ["--no-cache", "--python", python]
    words = {
        "uvx": [str(tools / "uvx"), "--no-config", *chosen, "--index", index, "odradek"],
        "pipx": [str(tools / "pipx"), "run", *chosen, "--pip-args", f"--extra-index-url {index}", "odradek"],
    }[program]
    homes = {"PIPX_HOME": str(tmp_path / "pipx"), "UV_TOOL_DIR": str(tmp_path / "uv"), "PYTHONPATH": ""}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in homes.items():
            patch.setenv(name, value)
        patch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
        run([sys.executable, SMOKE, "--compiled", "--", *words])


def test_the_forges_workflow_builds_a_wheel_for_each_platform() -> None:
    program = environment_of(INTERPRETERS[0]) / "cibuildwheel"
    printed = run(
        [str(program), "--print-build-identifiers", "--platform", "linux", "--enable", "cpython-prerelease", str(ROOT)]
    )
    expected = {
        f"cp3{minor}-{libc}linux_{machine}"
        for minor in range(11, 16)
        for libc in ("many", "musl")
        for machine in ("x86_64", "aarch64")
    }
    assert set(printed.stdout.decode().split()) == expected
