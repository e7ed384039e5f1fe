"""The asyncio side of `coordinator.replication`: fetches from the leaders of other brokers, and applies their
answers.
"""
