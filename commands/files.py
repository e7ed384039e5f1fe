"""The files that commands read and write. No other module of the commands opens files."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import BinaryIO, Final, TextIO

from commands.errors import CommandError, misuse

STANDARD_INPUT: Final = "-"
PROFILES_VARIABLE: Final = "ODRADEK_PROFILES"


def read_text(path: str, option: str) -> str:
    """Returns a file's text; "-" is standard input. Raises CommandError, which names the option."""
    try:
        return read_bytes(path, option).decode()
    except UnicodeDecodeError:
        raise misuse(f"{option} {path}: not UTF-8 text") from None


def read_bytes(path: str, option: str) -> bytes:
    """Returns a file's content; "-" is standard input. Raises CommandError like `read_text`."""
    with open_binary(path, option) as file:
        return file.read()


def open_binary(path: str, option: str) -> BinaryIO:
    """Opens a file to read it in pieces; "-" is standard input. Raises CommandError like `read_text`."""
    if path == STANDARD_INPUT:
        return sys.stdin.buffer
    try:
        return open(path, "rb")
    except OSError as error:
        raise misuse(f"{option} {path}: {error.strerror}") from None


def read_end(path: str, option: str, limit: int) -> bytes:
    """Returns at most the last `limit` bytes of a file. Raises CommandError like `read_text`."""
    with open_binary(path, option) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - limit, 0))
        return file.read(limit)


def open_end(path: str, option: str) -> TextIO:
    """Opens a file that only the user may read, to write at its end; creates it if it is missing. Raises
    CommandError."""
    try:
        return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="utf-8")
    except OSError as error:
        raise misuse(f"{option} {path}: {error.strerror}") from None


def write_private(path: str, content: bytes) -> None:
    """Replaces a file that only the user may read, and creates its folder. Raises CommandError."""
    temporary = f"{path}.new"
    try:
        os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from None


def profiles_path(environ: Mapping[str, str]) -> str:
    """Returns the path of the profiles file: ODRADEK_PROFILES, or odradek/profiles.toml in the user's configuration
    folder."""
    if path := environ.get(PROFILES_VARIABLE):
        return path
    folder = environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(folder, "odradek", "profiles.toml")


def exists(path: str) -> bool:
    return os.path.exists(path)
