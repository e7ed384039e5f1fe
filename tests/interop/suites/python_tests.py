"""Suites in Python: tests in source distributions, in the versions of python/sources.lock, run by pytest."""

from __future__ import annotations

import re
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from bench.jars import locked
from tests.interop.processes import CACHE, run
from tests.interop.suites.nodes import Nodes
from tests.interop.suites.outcomes import REASON_LENGTH, Outcome, Result
from tests.interop.suites.processes import Process

LOCK = Path(__file__).parent / "python" / "sources.lock"
TEST_TIMEOUT_S = 180
MISSING = {
    "kafka-python": {
        "test/__init__.py": "",
        "test/service.py": """
class ExternalService:
    def __init__(self, host, port):
        pass

class SpawnedService:
    pass
""",
    }
}
"""Modules that tests import, and that the distribution lacks. They start brokers; here the brokers run already."""
ENDS = {"failure": Outcome.FAILED, "error": Outcome.FAILED, "skipped": Outcome.SKIPPED}
COLLECTED = re.compile(r"^\S+\.py::\S.*$")


def unpacked(package: str) -> Path:
    """Returns the folder of a source distribution. pip downloads it once, and checks its hash."""
    found: list[tuple[str, str]] = re.findall(rf"^({package}==\S+)((?: \\\n    --hash=\S+)+)", LOCK.read_text(), re.M)
    requirement, hashes = found[0]
    folder = CACHE / "suites" / requirement.replace("==", "-")
    with locked(folder.name):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=folder.parent) as work:
                wanted = Path(work) / "wanted.lock"
                wanted.write_text(f"{requirement}{hashes}\n")
                command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
                command += ["--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--require-hashes"]
                run([*command, "--dest", work, "--requirement", str(wanted)], timeout_s=600)
                with tarfile.open(next(Path(work).glob("*.tar.gz"))) as archive:
                    archive.extractall(work, filter="data")
                source = next(path for path in Path(work).iterdir() if path.is_dir())
                for name, text in MISSING.get(package, {}).items():
                    (source / name).write_text(text)
                shutil.move(source, folder)
    return folder.resolve()  # pytest names tests by their folder below --rootdir, and resolves only the former


class PythonTests(NamedTuple):
    """The tests in a folder of a source distribution."""

    package: str
    folder: str
    environment: Callable[[Nodes], Mapping[str, str]]

    def versions(self) -> dict[str, str]:
        name, version = unpacked(self.package).name.rsplit("-", 1)
        return {name: version, "python": sys.version.split()[0]}

    def alone(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def run(self, nodes: Nodes, tests: str, process: Process) -> dict[str, Result]:
        source = unpacked(self.package)
        report = process.output.with_suffix(".xml")
        report.unlink(missing_ok=True)
        environment = {**self.environment(nodes), "PYTHONPATH": str(source), "PYTEST_ADDOPTS": ""}
        command = [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly"]
        command += [
            f"--rootdir={source}",
            f"--timeout={TEST_TIMEOUT_S}",
            "--timeout-method=signal",
            tests or self.folder,
        ]
        lines = [] if tests else process.run([*command, "-q", "--collect-only"], environment, source)
        results = {line.removeprefix(f"{self.folder}/"): Result(Outcome.NOT_RUN)
                   for line in lines if COLLECTED.match(line)}  # fmt: skip
        process.run([*command, f"--junitxml={report}"], environment, source)
        return results | (reported(ElementTree.fromstring(report.read_text()), self.folder) if report.exists() else {})


def reported(report: ElementTree.Element, folder: str) -> dict[str, Result]:
    """Returns the results in a report in JUnit's format. A failed test may be in it twice: with its clean-up."""
    results: dict[str, Result] = {}
    for case in report.iter("testcase"):
        module, *classes = case.attrib["classname"].replace(".", "/").removeprefix(f"{folder}/").split("/")
        name = "::".join([f"{module}.py", *classes, case.attrib["name"]])
        bad = next((part for part in case if part.tag in ENDS), None)
        if bad is None:
            results.setdefault(name, Result(Outcome.PASSED, float(case.attrib["time"])))
        else:
            reason = bad.attrib.get("message", "").strip().partition("\n")[0][:REASON_LENGTH]
            results[name] = Result(ENDS[bad.tag], float(case.attrib["time"]), reason)
    return results
