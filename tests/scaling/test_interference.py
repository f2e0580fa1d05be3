"""Weights and KV on one link: the formula against processor sharing, flow by flow."""

import numpy as np
import pytest

from workbench.errors import UserError
from workbench.scaling.model.interference import SharedLink, interference
from workbench.scaling.simulated.interference import simulate


def link(share: float, same_direction=True) -> SharedLink:
    """A load as long as 400 transfers of KV alone."""
    return SharedLink(
        bytes_per_s=1.0, weight_bytes=400.0, kv_bytes=1.0, batches_per_s=share, same_direction=same_direction
    )


@pytest.mark.parametrize("share", [0.157, 1 / 3, 0.545])
def test_formula_and_flows_agree(share):
    found = interference(link(share))
    rng = np.random.default_rng(7)
    runs = [simulate(link(share), rng, 400.0) for _ in range(12)]
    load_s = np.array([run.load_s for run in runs])
    error = 3 * load_s.std(ddof=1) / np.sqrt(load_s.size)
    assert abs(load_s.mean() - found.load_s) < error + 0.01 * found.load_s
    during = np.concatenate([run.during_s for run in runs]).mean()
    outside = np.concatenate([run.outside_s for run in runs]).mean()
    assert during == pytest.approx(found.kv_s, rel=0.1)
    assert outside == pytest.approx(found.kv_alone_s, rel=0.1)


def test_opposite_directions_do_not_see_each_other():
    run = simulate(link(0.545, same_direction=False), np.random.default_rng(1), 50.0)
    assert run.load_s == pytest.approx(400.0, rel=1e-12)
    assert interference(link(0.545, same_direction=False)).load_s == 400.0


def test_no_kv_at_all():
    assert interference(link(0.0)).load_s == 400.0
    run = simulate(link(0.0), np.random.default_rng(1), 1.0)
    assert (run.load_s, run.during_s.size, run.outside_s.size) == (400.0, 0, 0)


def test_more_kv_than_the_link_carries_is_refused():
    with pytest.raises(UserError, match=r"1\.2 times the link; lower batches_per_s"):
        link(1.2)
