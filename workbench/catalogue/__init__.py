"""Figures, tables and claims as experiments: a folder a paper, what they share beside them; see `spec`."""
