"""Compiled formulas and event loops of server chains: arrays in, arrays filled."""
