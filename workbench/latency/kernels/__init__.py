"""Step-time kernels: numbers in, seconds filled; each with a slow twin in `slow`."""
