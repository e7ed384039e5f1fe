"""The engine: runs state machines whose state is the fold of their records.

A `Machine` decides and applies; an `Engine` appends the records, applies them, carries out the effects, and releases
the replies once the records are committed. It loads shards, and hosts the cluster's metadata, which is loaded already.
Only `engine.py` and `loaded.py` know asyncio.
"""
