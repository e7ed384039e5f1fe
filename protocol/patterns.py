"""Regular expressions of a peer's that Python compiles."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Final

MAX_NESTING: Final = 100
"""Groups in groups. Python's compiler calls itself for each, and fails after some hundred, sooner if its caller is deep
in other calls: a pattern that was accepted once is compiled again elsewhere."""


def python_pattern(text: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Returns a compiled pattern. Raises re.error alone, also if its groups are nested too deeply, or it has a number
    over which Python's compiler fails with another error."""
    depths = accumulate((character == "(") - (character == ")") for character in text)
    if max(depths, default=0) > MAX_NESTING:
        raise re.error(f"more than {MAX_NESTING} groups are in each other")
    try:
        return re.compile(text, flags)
    except (OverflowError, ValueError):
        raise re.error("it has too large a number") from None
