"""Groups: classic, consumer, share and streams groups, on __consumer_offsets."""
