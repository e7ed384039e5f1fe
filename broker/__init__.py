"""The broker: sockets, time, randomness, threads, and one file per API in handlers/.

No module below dispatch/ knows `Broker`: each part gets what it needs as arguments. A handler gets a `Call`, with the
request, its context and `Broker`; a handler that controllers have too uses only the `Host`, which has the image, the
controller and the options. A module is imported when it is first needed, because imports are most of the start-up
time.
"""
