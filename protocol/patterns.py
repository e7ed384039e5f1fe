"""Compiles regular expressions from a peer."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Final

MAX_NESTING: Final = 100
"""Maximum nesting of groups. Python's compiler recurses at each level, and fails after a few hundred levels, or earlier
in deep call stacks. So a pattern that compiles in one place may fail in another."""


def python_pattern(text: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Compiles a pattern. Raises only re.error, even for groups that are nested too deeply, or for a number that makes
    Python's compiler raise another error."""
    depths = accumulate((character == "(") - (character == ")") for character in text)
    if max(depths, default=0) > MAX_NESTING:
        raise re.error(f"groups are nested more than {MAX_NESTING} deep")
    try:
        return re.compile(text, flags)
    except (OverflowError, ValueError):
        raise re.error("a number in it is too large") from None
