"""Sockets: listeners, connections, and the limits of both.

A connection has one request in flight, as in Apache Kafka. Only Produce requests that wait for other replicas overlap
(`in_flight.py`): they hold no records, and are answered in their order. While an answer is awaited or the client is
slow to read, the connection is not read from. With TLS, a `TlsTransport` is between socket and connection.
"""
