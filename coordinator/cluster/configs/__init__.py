"""Configs: of what, by which rules."""
