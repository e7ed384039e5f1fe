"""The commands that talk to any Kafka cluster: `odradek topic`, `odradek produce` and so on.

They reach brokers over TCP through the outbound client, and use no other part of the broker. They import none of its
slow modules, because most commands run only for a moment.
"""
