"""`odradek cluster balance`."""

from __future__ import annotations

from commands.words.balancing import declare_balance as declare

__all__ = ["declare"]
