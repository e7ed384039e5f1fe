"""Runs a broker on an event loop that reports long callbacks: `python -m tests.fuzz.held run …`, like `odradek run …`.

A callback that takes long on the processor, independent of other work of the machine, is logged as an error with its
client's address.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import sys
import time
from asyncio import protocols
from typing import Any, Final

import uvloop

from broker.network.connection import ServerConnection
from cli.main import main

HELD_MS: Final = float(os.environ.get("ODRADEK_FUZZ_HELD_MS", "100"))
_run = asyncio.events.Handle._run


class Collections:
    """Measures garbage collections, which may begin in any callback."""

    def __init__(self) -> None:
        self.took_s = self._began_s = 0.0

    def __call__(self, phase: str, _: object) -> None:
        if phase == "start":
            self._began_s = time.thread_time()
        else:
            self.took_s += time.thread_time() - self._began_s


collections: Final = Collections()


def timed(handle: Any) -> None:
    """Runs a callback of the loop, and measures the thread's own time."""
    began, collections.took_s = time.thread_time(), 0.0
    _run(handle)
    held_ms = (time.thread_time() - began) * 1000
    if held_ms > HELD_MS:
        print(json.dumps({
            "level": "error", "event": "the loop was held", "ms": round(held_ms), "peer": peer_of(handle),
            "by": repr(handle)[:500], "collecting_ms": round(collections.took_s * 1000),
        }), file=sys.stderr, flush=True)  # fmt: skip


def peer_of(handle: Any) -> str:
    """Returns the client whose bytes the callback read, if it was a read."""
    transport = getattr(handle._callback, "__self__", None) if handle._callback else None
    address = transport.get_extra_info("peername") if isinstance(transport, asyncio.BaseTransport) else None
    return "unknown" if not address else f"{address[0]}:{address[1]}"


if __name__ == "__main__":
    gc.callbacks.append(collections)
    asyncio.events.Handle._run = timed  # type: ignore[method-assign, assignment]
    uvloop.new_event_loop = asyncio.SelectorEventLoop  # type: ignore[assignment]  # uvloop's callbacks cannot be timed
    protocols.BufferedProtocol = (asyncio.BufferedProtocol, ServerConnection)  # type: ignore[assignment, misc]
    ServerConnection.eof_received = lambda self: None  # type: ignore[attr-defined]
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # it says more of sockets that are gone than uvloop
    sys.exit(main())
