"""Authentication: how a connection's client proves its identity, and the requests that it may send before."""
