"""Compiled kernels of the transfer mechanism: arrays in, arrays filled; each closed form has a slow plain twin."""
