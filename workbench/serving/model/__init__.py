"""Records in, tables out: what a serving cluster is made of and what became of its requests."""

from workbench.serving.model.engine import run_compiled
from workbench.serving.model.lowered import Failures, Instances, Lowered, Outcome, Requests

__all__ = ["Failures", "Instances", "Lowered", "Outcome", "Requests", "run_compiled"]
