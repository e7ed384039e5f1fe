"""`odradek log`: shows a data directory to people, and checks that all of it is sound. Needs no running broker."""
