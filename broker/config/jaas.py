"""Parses JAAS lines, as in sasl.jaas.config: LoginModule required name="value" …;

Errors name the option and never repeat a value, because most values are passwords.

Source: org.apache.kafka.common.security.JaasConfig, java.io.StreamTokenizer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from protocol.config import ConfigError

FLAGS: Final = ("required", "requisite", "sufficient", "optional")

PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
USER_PREFIX: Final = "user_"

TOKEN: Final = re.compile(
    r"""\s+ | //[^\n\r]* | /\*.*?\*/
      | (?P<word>[A-Za-z0-9_$.\-\u00a0-\U0010ffff]+)
      | "(?P<double>(?:[^"\\\n\r]|\\.)*)" | '(?P<single>(?:[^'\\\n\r]|\\.)*)'
      | (?P<sign>[=;])""",
    re.VERBOSE | re.DOTALL,
)
ESCAPE: Final = re.compile(r"\\([0-3][0-7]{2}|[0-7]{1,2}|.)", re.DOTALL)
ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class LoginModule(NamedTuple):
    """The login module of a mechanism, and its options."""

    name: str
    options: Mapping[str, str] = MappingProxyType({})

    @property
    def users(self) -> dict[str, str]:
        """Passwords of PLAIN's users, by user name (user_<name>="<password>")."""
        return {
            name.removeprefix(USER_PREFIX): value
            for name, value in self.options.items()
            if name.startswith(USER_PREFIX)
        }

    @property
    def login(self) -> tuple[str, str] | None:
        """Name and password with which this node authenticates to other nodes; None without them."""
        name, password = self.options.get("username"), self.options.get("password")
        return None if name is None or password is None else (name, password)

    def __repr__(self) -> str:
        return f"LoginModule({self.name}, {sorted(self.options)})"


def parse_jaas(name: str, text: str) -> LoginModule:
    """Returns the login module in the value of option `name`. Raises ConfigError, without values."""
    tokens = list(_tokens(name, text))
    if len(tokens) < 3 or tokens[0].sign or tokens[1].sign:
        raise _wrong(name, "it is not LOGINMODULE required NAME=VALUE …;")
    if tokens[1].text.lower() not in FLAGS:
        raise _wrong(name, f"the control flag is none of {', '.join(FLAGS)}")
    options: dict[str, str] = {}
    position = 2
    while position < len(tokens) and tokens[position].text + tokens[position].sign != ";":
        option, equals, value = (*tokens[position : position + 3], *(_END,) * 3)[:3]
        if option.sign or equals.sign != "=" or value.sign or value is _END:
            raise _wrong(name, f"no value is specified for {option.text or option.sign!r}")
        options[option.text] = value.text
        position += 3
    if position == len(tokens):
        raise _wrong(name, "the entry is not terminated by a semicolon")
    if position + 1 < len(tokens):
        raise _wrong(name, "there is more than one login module; a listener's mechanism has one")
    return LoginModule(tokens[0].text, options)


class _Token(NamedTuple):
    text: str
    sign: str = ""


_END: Final = _Token("")


def _tokens(name: str, text: str) -> Iterator[_Token]:
    position = 0
    while position < len(text):
        match = TOKEN.match(text, position)
        if match is None:
            raise _wrong(name, f"character {position + 1} is not part of a word; quote the value")
        position = match.end()
        quoted = match["double"] if match["double"] is not None else match["single"]
        if match["sign"]:
            yield _Token("", match["sign"])
        elif quoted is not None:
            yield _Token(ESCAPE.sub(_unescaped, quoted))
        elif match["word"]:
            yield _Token(match["word"])


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    return chr(int(escape, 8)) if escape[0] in "01234567" else ESCAPES.get(escape, escape)


def _wrong(name: str, problem: str) -> ConfigError:
    return ConfigError(f"{name}: {problem}", name=name)
