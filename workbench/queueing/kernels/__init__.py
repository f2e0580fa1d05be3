"""Compiled kernels of the waiting lines: closed forms and sample paths, each with a slow plain twin."""
