"""The same bytes without the protocol: a server of a few lines, and a client that pumps bytes into it or out of it."""
