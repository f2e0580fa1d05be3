"""Numba kernels of scaling with half-loaded instances: arrays in, arrays filled.

Formulas have a slow twin beside them; the twins of `live_pair` and `staged` are the SimPy processes of `simulated`.
"""
