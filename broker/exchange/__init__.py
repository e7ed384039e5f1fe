"""A request beside its body, and its answer: whose it is, how it may wait, and the one way out."""
