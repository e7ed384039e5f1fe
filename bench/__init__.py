"""The same load on Odradek and on its peers, side by side: what each broker pays for it. See docs/benchmarks.md.

The brokers are reached over TCP only: nothing here imports their code.
"""
