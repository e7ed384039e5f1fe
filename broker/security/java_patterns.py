"""Regular expressions in Java's syntax, as far as Python reads them alike."""

from __future__ import annotations

import re
import warnings
from typing import Final

from protocol.config import ConfigError
from protocol.patterns import python_pattern

NAMED_GROUP: Final = re.compile(r"\(\?<([A-Za-z][A-Za-z0-9]*)>")


def java_pattern(option: str, rule: str, pattern: str) -> re.Pattern[str]:
    """Returns the pattern of a rule. Raises ConfigError if Python rejects it, or warns that it may have another
    meaning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        try:
            return python_pattern(NAMED_GROUP.sub(r"(?P<\1>", pattern), re.ASCII)  # as Java's \w and \d
        except (re.error, FutureWarning) as error:
            raise ConfigError(f"{option}: {rule}: {pattern!r} is not a valid pattern: {error}", name=option) from None
