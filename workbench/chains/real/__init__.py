"""Chains of real servers: processes with blocks of a transformer; torch in the workers only."""

from workbench.chains.real.outcome import ChainLoss, ChainRun
from workbench.chains.real.profiling import profile_jobs
from workbench.chains.real.reporting import check_outputs
from workbench.chains.real.running import SHAPE, serve_chains

__all__ = ["SHAPE", "ChainLoss", "ChainRun", "check_outputs", "profile_jobs", "serve_chains"]
