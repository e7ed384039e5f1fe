"""The floor: the same bytes without the protocol, by a server of a few lines and a client that sends or receives
them.
"""
