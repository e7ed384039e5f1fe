"""Removes secrets from the texts of a debug bundle. Pure."""

from __future__ import annotations

import re
from typing import Final

SECRET: Final = "(secret)"

NAMES: Final = r"(?:password|passwd|secret|jaas\.config|keystore\.key|hmac|credential|authorization|api[._-]?key|token)"
"""Parts of the names of settings and fields with secrets."""

ASSIGNMENT: Final = re.compile(
    rf"""((?:[\w.\-]*{NAMES}[\w.\-]*)["']?\s*[=:]\s*)("(?:[^"\\]|\\.)*"|'[^']*'|(?:Bearer|Basic)\s+\S+|[^\s,;"'}}\]]+)""",
    re.IGNORECASE,
)
JAAS: Final = re.compile(r"([\w.]*jaas\.config[\"']?\s*[=:]\s*)([^\n]*)", re.IGNORECASE)
"""The rest of a line with a JAAS configuration, which has the password further on."""
PEM: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
ADDRESS: Final = re.compile(r"(\w+://[^\s/:@]*:)[^\s/@]+@")
"""A URL with a password."""

NAME: Final = re.compile(NAMES, re.IGNORECASE)


def redacted(text: str) -> str:
    """Returns a text without the values of secret settings, private keys, and passwords in URLs."""
    text = PEM.sub(SECRET, text)
    text = JAAS.sub(rf"\1{SECRET}", text)
    text = ASSIGNMENT.sub(rf"\1{SECRET}", text)
    return ADDRESS.sub(rf"\1{SECRET}@", text)


def is_secret(name: str) -> bool:
    """True if the value of a config may be a secret, by its name. delegation.token.max.lifetime.ms and the like are
    none."""
    return ("token" not in name and NAME.search(name) is not None) or "secret" in name
