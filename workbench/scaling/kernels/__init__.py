"""Numba kernels of scaling with half-loaded instances: arrays in, arrays filled, each with a slow twin."""
