"""Compiled event loops of pools of models: plain arrays in, plain arrays out; their twins are in `simulated`."""
