"""Groups, transactions, share state, cluster metadata: facts are records, state is their fold.

`Runtime` runs shards: decide, append, apply, wait for the commit, release the replies. A decision that fails by a bug
fails for its own request or timer; a shard whose state may be half changed is loaded again. Only `runtime.py` and
`hosted.py` know asyncio.
"""
