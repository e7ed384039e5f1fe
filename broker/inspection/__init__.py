"""`odradek log`: what is in a data directory, for people, and whether all of it is sound. Needs no running broker."""
