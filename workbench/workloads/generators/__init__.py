"""Workloads that nobody sent: arrival processes, lengths, markets of models."""
