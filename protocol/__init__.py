"""The Kafka wire protocol as pure functions of bytes: no sockets, no clock, no files."""
