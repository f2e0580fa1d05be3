"""Processes that host blocks of a transformer and serve whatever sessions come: what one server of a chain runs."""
