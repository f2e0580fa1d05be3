"""Every slider of every experiment can be dragged to both of its ends."""

import pytest

from workbench.catalogue import running, spec
from workbench.figures import draw

IDS = list(spec.all_specs())
MEASURED = ("theory/link-validation", "serving/replay-validation")
"""Experiments that cannot run anew without the measurements; a recorded run stands in for their defaults alone."""
AT_ONCE_S = 0.5
"""Seconds of a whole run up to which a slider is dragged with it; beyond, with a quick one."""
LONG_S = 3.0
"""Seconds of a whole run beyond which ends are not dragged here: a suite of some minutes cannot hold them."""
ENDS = [
    (id, parameter.name, end)
    for id in IDS
    if spec.find(id).seconds.get(spec.find(id).backends[0], 0.0) < LONG_S
    for parameter in spec.find(id).parameters
    if parameter.kind in (int, float) and not parameter.many
    for end in (parameter.about.low, parameter.about.high)
]


@pytest.mark.parametrize(("id", "name", "end"), ENDS)
def test_each_slider_can_be_dragged_to_its_ends(id, name, end, request):
    entry = spec.find(id)
    if id in MEASURED:
        request.getfixturevalue("shared_data")
    first = entry.backends[0]
    outcome = running.run(entry, {name: end}, backends=first, quick=entry.seconds.get(first, 0.0) > AT_ONCE_S)
    assert draw(outcome).to_dict()["data"]
