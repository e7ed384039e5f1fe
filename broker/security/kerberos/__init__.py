"""Tickets of Kerberos: whom they prove, and the names of those."""
