"""The client of a cluster that commands use: settings, connections, and who leads what."""
