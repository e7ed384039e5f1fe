"""The commands that talk to a cluster, whoever made it: `odradek topic`, `odradek produce` and their neighbours.

They reach brokers over TCP by the outbound client, and know nothing else of the broker; no module of it that is slow to
import is one of theirs, since most commands live for a moment.
"""
