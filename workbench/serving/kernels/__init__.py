"""The compiled event loop of a serving cluster."""
