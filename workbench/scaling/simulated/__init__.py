"""SimPy twins of scaling with half-loaded instances."""
