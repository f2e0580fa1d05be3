"""Every entry that has a real run: asked for alone it runs, draws and says a sentence."""

import pytest
from quick_runs import alone

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
