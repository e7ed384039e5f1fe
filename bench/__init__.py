"""The same load on Odradek and on its peers, side by side: the cost for each broker. See docs/benchmarks.md.

The brokers are reached over TCP only: nothing here imports their code.
"""
