"""Compiled replays of caches and exact distributions of LRU caches, each with a slow plain twin."""
