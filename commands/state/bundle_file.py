"""Writes the file of `odradek cluster bundle`."""

from __future__ import annotations

import asyncio
import io
import json
import sys
import zipfile
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

from cli.exits import DONE, FAILED
from cli.times import show_time
from commands.errors import misuse
from commands.files import read_end, write_private
from commands.printing import Row, as_json
from commands.session import Session
from commands.state.bundle import documents
from commands.state.redaction import redacted

LOG_BYTES: Final = 16 * 1024 * 1024
"""Bytes of each log's end that the bundle has."""
METRICS_BYTES: Final = 64 * 1024 * 1024
METRICS_S: Final = 10


async def write_bundle(session: Session) -> int:
    """Writes the archive, and shows a row for each part."""
    options = session.options
    for url in options.metrics:
        if not url.startswith(("http://", "https://")):
            raise misuse(f"--metrics {url}: expected a URL, such as http://127.0.0.1:9404/metrics")
    logs = {f"log-{number}.txt": read_end(path, "--log", LOG_BYTES) for number, path in enumerate(options.log, 1)}
    found, errors = await documents(session.cluster)
    files = {f"{name}.json": "".join(f"{as_json(row)}\n" for row in rows) for name, rows in found.items()}
    files |= {name: redacted(content.decode(errors="replace")) for name, content in logs.items()}
    for number, url in enumerate(options.metrics, 1):
        try:
            files[f"metrics-{number}.txt"] = redacted(await asyncio.to_thread(_metrics, url))
        except (URLError, OSError, ValueError) as error:
            errors[f"metrics of {url}"] = str(error)
    about = {"python": sys.version, "platform": sys.platform, "at": show_time(session.cluster.clock.now_ms())}
    files |= {"about.json": json.dumps(about), "errors.json": json.dumps(errors, indent=1)}
    write_private(options.file, _archive(files))
    rows: list[Row] = [{"file": name, "bytes": len(content)} for name, content in sorted(files.items())]
    rows += [{"file": None, "error": f"{part}: {error}"} for part, error in errors.items()]
    session.output.rows(("file", "bytes"), rows)
    return FAILED if errors else DONE


def _archive(files: dict[str, str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in sorted(files.items()):
            archive.writestr(name, text)
    return content.getvalue()


def _metrics(url: str) -> str:
    with urlopen(url, timeout=METRICS_S) as answer:
        content: bytes = answer.read(METRICS_BYTES)
    return content.decode(errors="replace")
