"""Measures which branches of the handlers a run has executed: coverage.py in the broker's process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
MEASURED: Final = ("programs", "broker", "coordinator", "storage", "protocol")


class Coverage:
    """Collects the measurements of brokers in a folder."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "coverage"
        self.settings = folder / "coveragerc"
        self.settings.write_text(
            f"[run]\nbranch = True\nparallel = True\nsigterm = False\ndata_file = {self.file}\n"
            f"source =\n{''.join(f'    {ROOT / name}{chr(10)}' for name in MEASURED)}"
        )

    def command(self) -> Sequence[str]:
        """Returns the command that starts a broker."""
        return [sys.executable, "-m", "coverage", "run", f"--rcfile={self.settings}", "-m", "odradek"]

    def report(self) -> str:
        """Returns a line for each handler, and the sum of each room."""
        self.tool("combine", "--quiet")
        handlers = self.tool("report", f"--include={ROOT}/broker/handlers/*", "--sort=cover")
        rooms = [
            f"{name:28} {self.tool('report', f'--include={ROOT}/{name}/*', '--format=total').strip()} %"
            for name in ("broker/handlers", "broker/fast", *MEASURED)
        ]
        return "\n".join([handlers, "branches and lines taken:", *rooms])

    def tool(self, *words: str) -> str:
        command = [sys.executable, "-m", "coverage", words[0], f"--rcfile={self.settings}", *words[1:]]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
