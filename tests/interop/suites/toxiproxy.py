"""The proxy that sarama's tests expect: Toxiproxy, with one proxy per broker on fixed ports.

The tests also stop and start brokers by `docker compose`. A program of that name, first on their path, does it instead.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer

from bench.jars import APACHE_KAFKA
from tests.interop.processes import Server, free_port, run
from tests.interop.suites.go_tests import HERE
from tests.interop.suites.nodes import Nodes

PROXIES = 5
FIRST_PORT = 29_091
TIMEOUT_S = 60
DOCKER = """#!{python}
import socket, sys
with socket.create_connection(("127.0.0.1", {port})) as harness:
    harness.sendall(" ".join(sys.argv[2:]).encode() + b"\\n")
    sys.exit(harness.recv(1000).decode() or None)
"""
"""The program `docker`: sends `stop kafka-1` or `start kafka-1` to the harness, and waits for the answer."""


def settings(node_id: int) -> dict[str, str]:
    """Returns settings of a broker, as in sarama's own cluster."""
    return {
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{FIRST_PORT + node_id - 1}",
        "broker.rack": str(node_id),
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
        "min.insync.replicas": "1",
    }


@contextmanager
def proxies(nodes: Nodes, folder: Path) -> Iterator[Mapping[str, str]]:
    """Runs the proxies and yields the environment of the tests. Proxies 4 and 5 lead to the first two brokers."""
    program = folder / "toxiproxy"
    run(
        ["go", "-C", str(HERE), "build", "-o", str(program), "github.com/Shopify/toxiproxy/v2/cmd/server"],
        timeout_s=900,
    )
    server = Server("toxiproxy", folder / "toxiproxy.log")
    port = free_port()
    server.launch([str(program), "-host", "127.0.0.1", "-port", str(port)], "(?i)starting", TIMEOUT_S)
    try:
        for number in range(PROXIES):
            broker = nodes.brokers[number % len(nodes.brokers)]
            proxy = {"name": f"kafka{number + 1}", "listen": f"127.0.0.1:{FIRST_PORT + number}"}
            body = json.dumps({**proxy, "upstream": nodes.address(broker), "enabled": True}).encode()
            urllib.request.urlopen(f"http://127.0.0.1:{port}/proxies", body, TIMEOUT_S).close()
        with stopping(nodes, folder) as path:
            yield {"TOXIPROXY_ADDR": f"http://127.0.0.1:{port}", "KAFKA_VERSION": APACHE_KAFKA, "PATH": path}
    finally:
        server.forget()


@contextmanager
def stopping(nodes: Nodes, folder: Path) -> Iterator[str]:
    """Yields a PATH whose `docker` stops and starts brokers."""

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            verb, service, *_ = [*self.rfile.readline().decode().split(), ""]
            if verb not in ("start", "stop"):
                return  # `down` at the end of the tests
            broker = nodes.brokers[int(service.removeprefix("kafka-")) - 1]
            try:
                if broker.is_running == (verb == "stop"):
                    broker.end() if verb == "stop" else broker.start()
            except AssertionError as error:
                self.wfile.write(str(error).encode()[:900])

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as harness:
        threading.Thread(target=harness.serve_forever, daemon=True).start()
        docker = folder / "bin" / "docker"
        docker.parent.mkdir()
        docker.write_text(DOCKER.format(python=sys.executable, port=harness.server_address[1]))
        docker.chmod(docker.stat().st_mode | stat.S_IXUSR)
        try:
            yield f"{docker.parent}:{os.environ['PATH']}"
        finally:
            harness.shutdown()
