"""What the fork server imports once, so that every worker forked from it starts with torch loaded.

Imported by name in the fork server only. One thread a worker: equal thread counts are what makes outputs comparable bit
for bit, and OpenMP reads its variable when it is loaded.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import torch
import torch.distributed

import workbench.executor.relay

__all__ = ["torch", "workbench"]
