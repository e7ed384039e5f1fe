"""One request: its context, the ways in which a request waits for its answer, quotas, and the interceptors of
answers.
"""
