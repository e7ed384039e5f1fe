"""The context of a request, the ways in which a request waits for its answer, quotas, and the interceptors of
answers.
"""
