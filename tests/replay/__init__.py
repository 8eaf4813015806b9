"""Replay of recorded caches: every field of every record against what the model gives.

Run as `python -m tests.replay PATH...`.
"""
