"""Compiled rooms of blending: the prefix tree, its sums, its transformation, and the step loop."""
