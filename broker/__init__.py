"""The broker: sockets, time, processes, and one file per API in handlers/."""
