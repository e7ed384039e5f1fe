"""Authentication: how a connection gets its principal, and which requests it may send before that.

On listeners with SASL, `SaslGate` comes before the dispatcher. Its table `ALLOWED` has the APIs of each state; any
other request closes the connection. Passwords are compared in constant time, and an unknown user gets a challenge like
any other user. SCRAM users are records of the metadata log, PLAIN users are in the configuration.
"""
