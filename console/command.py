"""`odradek console`."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Final

from cli.actions import Actions, Program
from cli.exits import fail
from cli.flags import BOOTSTRAP, CONFIG, LISTEN, PROFILE, SET
from cli.parser import Parser
from client.address import Address
from commands.client.settings import Given, gather
from commands.errors import CommandError, misuse
from commands.files import open_end, read_text
from protocol.lazy import lazy

if TYPE_CHECKING:
    from client import registry
    from console import schemas, serving
else:  # its packages come with odradek[console]
    registry = lazy("client.registry")
    schemas = lazy("console.schemas")
    serving = lazy("console.serving")

DEFAULT_LISTEN: Final = "127.0.0.1:8080"
LOOPBACK: Final = ("127.", "::1", "localhost")

MIN_TOKEN: Final = 16
"""Minimum number of characters of a token of the user's own."""

MORE: Final = """\
It prints "ready URL" on standard output; the URL has a token that logs the browser in. With --login, browsers log in
with a SASL user and password of the cluster, and the console acts as that user. It shows the cluster and changes
nothing, unless --allow-changes is given: then every change is a line of JSON in the audit log. On another address than
the loopback it needs --tls-certificate, or --name behind a proxy that ends TLS. docs/console.md shows the pages."""


def declare(actions: Actions) -> None:
    actions.only(
        run_console,
        options=_options,
        examples=(
            "odradek console",
            "odradek console --bootstrap broker.example:9092 --listen 127.0.0.1:0",
            "odradek console --profile prod --login --allow-changes --audit-log audit.jsonl",
        ),
        more=MORE,
    )


def _options(parser: Parser) -> None:
    LISTEN.add(parser, default=DEFAULT_LISTEN)
    parser.add_argument("--allow-changes", action="store_true", help="offer changes of the cluster; default: read-only")
    parser.add_argument("--login", action="store_true", help="log in with SASL users of the cluster, not by a token")
    parser.add_argument("--token-file", metavar="FILE", help="file with the token; default: a new one at each start")
    parser.add_argument("--audit-log", metavar="FILE", help="file that gets the audit log; default: standard error")
    parser.add_argument(
        "--name", action="append", default=[], metavar="HOST", help="a host name of the console; repeatable"
    )
    parser.add_argument(
        "--mask",
        action="append",
        default=[],
        metavar="REGEX",
        help="hide matches in keys, values and headers; repeatable",
    )
    decoding = parser.add_argument_group("schemas of records")
    decoding.add_argument("--schema-registry", metavar="URL", help="registry of Avro, Protobuf and JSON schemas")
    decoding.add_argument("--schema-registry-login", metavar="FILE", help="file with USER:PASSWORD for the registry")
    for part in ("key", "value"):
        decoding.add_argument(
            f"--{part}-schema",
            action="append",
            default=[],
            metavar="TOPIC=FILE",
            help=f"schema of a topic's {part}s: FILE.avsc, or FILE.desc:MESSAGE of protoc --descriptor_set_out",
        )
    parser.add_argument("--tls-certificate", metavar="FILE", help="certificate of the console, in PEM")
    parser.add_argument("--tls-key", metavar="FILE", help="private key of the certificate, in PEM")
    parser.add_argument("--stop-with-input", action="store_true", help=argparse.SUPPRESS)
    common = parser.add_argument_group("the cluster")
    BOOTSTRAP.add(common)
    PROFILE.add(common)
    CONFIG.add(common, help="settings of a client.properties file")
    SET.add(common, repeatable=True, help="a setting of the connection, such as client.id=NAME")


def run_console(options: argparse.Namespace) -> int:
    """Runs the console until it is stopped. Returns the exit code."""
    settings = gather(Given(options.bootstrap, options.profile, options.config_file, options.assignments), os.environ)
    listen = _address(options.listen)
    if bool(options.tls_certificate) != bool(options.tls_key):
        raise misuse("--tls-certificate and --tls-key belong together")
    if not listen.host.startswith(LOOPBACK) and not options.tls_certificate and not options.name:
        raise misuse(
            f"--listen {listen}: others could read passwords and cookies: add --tls-certificate and --tls-key, or "
            "--name HOST if a proxy ends TLS"
        )
    audit = open_end(options.audit_log, "--audit-log") if options.audit_log else sys.stderr
    return serving.serve(
        settings,
        serving.ServeOptions(
            listen,
            options.allow_changes,
            options.login,
            [name.lower() for name in options.name],
            _token(options.token_file),
            options.mask,
            schemas.FileSchemas(options.key_schema, options.value_schema),
            _registry(options.schema_registry, options.schema_registry_login),
            options.tls_certificate or "",
            options.tls_key or "",
            audit,
            options.stop_with_input,
        ),
    )


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    try:
        return Address.parse(f"{host}:1")._replace(port=0) if port == "0" else Address.parse(text)
    except ValueError as error:
        raise misuse(f"--listen: {error}") from None


def _registry(url: str | None, login: str | None) -> registry.RegistryAddress | None:
    if url is None:
        if login is not None:
            raise misuse("--schema-registry-login needs --schema-registry")
        return None
    user = read_text(login, "--schema-registry-login").strip() if login else ""
    try:
        return registry.registry_address(url, user)
    except ValueError as error:
        raise misuse(f"--schema-registry {error}") from None


def _token(path: str | None) -> str:
    if path is None:
        return ""
    token = read_text(path, "--token-file").strip()
    if len(token) < MIN_TOKEN or not token.isascii() or not token.isalnum():
        raise misuse(f"--token-file {path}: expected {MIN_TOKEN} or more letters and digits")
    return token


def run(options: argparse.Namespace) -> int:
    """Runs the action. Returns the exit code."""
    try:
        status: int = options.action(options)
    except CommandError as error:
        return fail(error.status, error.message)
    return status


PROGRAM: Final = Program(run, "0 stopped, 1 failed, 2 wrong arguments or settings")
