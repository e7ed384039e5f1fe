"""Reads a file of options."""

from __future__ import annotations

from broker.config.sources import ConfigProblems


def read_file(path: str) -> str:
    """Returns the text of a file of options. Raises ConfigProblems."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigProblems([f"{path}: {reason}"]) from None
