"""Records that users fill in, of transfer and of real runs: a value that cannot be is one sentence that names it."""

import math

import pytest

from workbench.errors import InputError
from workbench.executor.faults import Flip, Kill, Stop, Swap
from workbench.executor.scale import Scale
from workbench.transfer.model import Hockney, LogGP, Network, Resource
from workbench.transfer.simulated import Background, Death

GOOD = (
    (Hockney, {"alpha_s": 0.0, "bytes_per_s": 1e9}),
    (LogGP, {"latency_s": 1e-6, "overhead_s": 1e-6, "gap_s": 1e-6, "per_byte_s": 1e-9}),
    (Resource, {"name": "nic", "kind": "nic", "bytes_per_s": 1e9}),
    (Network, {"resources": (), "endpoints": ()}),
    (Background, {"source": 0, "target": 1, "bytes": 1.0}),
    (Death, {"node": 0, "time_s": 1.0}),
    (Kill, {"node": 0, "at_s": 1.0}),
    (Stop, {"node": 0, "at_s": 1.0}),
    (Flip, {"node": 0, "block": 1}),
    (Swap, {"node": 0, "block": 1, "other": 2}),
    (Scale, {"sigma": 2.0, "theta": 1.0}),
)


@pytest.mark.parametrize(("kind", "good"), GOOD, ids=lambda value: getattr(value, "__name__", ""))
@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, "much", None, [1], {}])
def test_each_field_refuses_what_it_cannot_be(kind, good, bad):
    kind(**good)
    for field in good:
        if (isinstance(good[field], str) and isinstance(bad, str)) or (isinstance(good[field], tuple) and bad == {}):
            continue
        if isinstance(good[field], tuple) and bad == []:
            continue
        with pytest.raises(InputError) as caught:
            kind(**{**good, field: bad})
        text = str(caught.value)
        assert f"field '{kind.__name__}.{field}" in text
        assert text.endswith(".")
        assert "\n" not in text
        assert len(text) < 300


@pytest.mark.parametrize(("kind", "good"), GOOD, ids=lambda value: getattr(value, "__name__", ""))
def test_unknown_missing_and_unnamed_fields(kind, good):
    with pytest.raises(InputError, match=rf"{kind.__name__}.colour': is not a known field; .*\."):
        kind(**good, colour="red")
    with pytest.raises(InputError, match="has no name; name the fields"):
        kind(*good.values())
    for field in (name for name, about in kind.model_fields.items() if about.is_required()):
        with pytest.raises(InputError, match=rf"{kind.__name__}.{field}': is missing; add {field}\."):
            kind(**{name: value for name, value in good.items() if name != field})
