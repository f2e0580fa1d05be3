"""A node's memory before a run: nothing of an earlier run may pass for received."""

from types import SimpleNamespace

import pytest

from workbench.executor.blocks import block_bytes
from workbench.executor.relay import Plan, _prepared

pytestmark = [pytest.mark.torch]
pytest.importorskip("torch", reason="torch is not installed: blocks are its tensors")


def plan(holds, fresh):
    return Plan("", 0, 2, (64, 64), 3, holds, fresh, (), (), "unpaced", False, 1.0)


def test_a_fresh_run_keeps_only_what_it_is_to_hold():
    desk = SimpleNamespace(kept={})
    first = _prepared(desk, plan((0, 1), fresh=True))
    again = _prepared(desk, plan((1,), fresh=True))
    assert again is first
    assert not again.payload(0).any()
    assert again.payload(1).tobytes() == block_bytes(3, 1, 64)


def test_a_recovery_finds_what_the_first_run_left():
    desk = SimpleNamespace(kept={})
    _prepared(desk, plan((0,), fresh=True))
    assert _prepared(desk, plan((0,), fresh=False)).payload(0).tobytes() == block_bytes(3, 0, 64)
