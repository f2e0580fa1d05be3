"""Every entry that has a real run: asked for alone it runs, draws and says a sentence."""

from importlib.util import find_spec

import pytest
from quick_runs import alone, with_real_run

from workbench.catalogue import spec
from workbench.figures import draw

REAL = [entry.id for entry in spec.all_specs().values() if "torch" in entry.backends[1:]]


@pytest.mark.real
@pytest.mark.parametrize("id", REAL)
def test_a_real_run_can_be_asked_alone(id):
    outcome = alone(id, "torch")
    assert outcome.backends == ("torch",)
    assert outcome.sentence.endswith(".")
    assert draw(outcome).to_dict()["data"]


@pytest.mark.torch
@pytest.mark.real
@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: real runs need it")
def test_real_orders_compute_what_is_counted_and_say_what_is_right():
    outcome = with_real_run("blendserve/real-orders")
    assert outcome.verdicts[0].ours == "identical"
    assert set(outcome.tables["identity"]["arithmetic"]) == {"plain", "invariant"}
    counted, timed = outcome.agreement
    assert (counted.difference, counted.agrees) == (0.0, True)
    assert timed.backends == ("compiled", "torch")
    overhead = [float(one.value) for one in outcome.sources if one.quantity == "overhead of the real job"]
    assert 0 <= overhead[0] < 1
