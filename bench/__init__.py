"""Puts the same load on Odradek and on its peers, side by side, and measures each broker's cost. See
docs/benchmarks.md.

The brokers are reached only over TCP: nothing here imports their code.
"""
