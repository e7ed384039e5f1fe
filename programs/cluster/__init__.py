"""`odradek cluster`: a controller and brokers as processes of one machine."""
