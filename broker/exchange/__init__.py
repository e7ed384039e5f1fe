"""The context of a request, and its answer: the client, the ways to wait, and the interceptors of answers."""
