"""Connections to brokers, for all code that acts as a client: brokers, commands, benchmarks and tests.

`connection` is the protocol of one connection, sans-IO: correlation, versions, authentication, limits. Its shells are
`aio` on an event loop and `blocking` on a plain socket, which imports no event loop. `Peer` and `BlockingPeer` connect
when needed; `Peers` and `BlockingPeers` have the brokers of a cluster by node id.

Every request has a deadline and is sent at most once; `errors` say if it was sent. A request that timed out keeps its
place in the order, so that its late answer is dropped.
"""
