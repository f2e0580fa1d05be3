"""Records and numbers that users give: used, or refused in one sentence that names the field and the remedy."""

import math
from typing import Annotated

import numpy as np
import pytest
from pydantic import Field

from workbench.errors import InputError
from workbench.executor.ceilings import Ceilings
from workbench.executor.faults import Flip, Kill, Stop, Swap
from workbench.executor.scale import Scale
from workbench.records import (
    Asked,
    AtLeastOne,
    Positive,
    Quantity,
    given_path,
    not_negative,
    positive,
    shown,
    takes_records,
    whole,
)
from workbench.transfer.model import Hockney, LogGP, Network, Resource
from workbench.transfer.simulated import Background, Death
from workbench.workloads import Limits, Poisson


class Inner(Asked):
    size: AtLeastOne


class Outer(Asked):
    rate_per_s: Positive
    inner: Inner | None = None
    part: AtLeastOne | tuple[int, int] = 1
    many: Annotated[tuple[Positive, ...], Field(min_length=1)] = (1.0,)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "field 'Outer.rate_per_s': is missing; add rate_per_s."),
        ({"rate_per_s": 0}, "field 'Outer.rate_per_s': is 0; input should be greater than 0."),
        ({"rate_per_s": math.nan}, "field 'Outer.rate_per_s': is nan; input should be a finite number."),
        ({"rate_per_sec": 3}, "field 'Outer.rate_per_sec': is not a known field; remove it, or use rate_per_s."),
        ({"rate_per_s": 1, "part": 0}, "field 'Outer.part': is 0; input should be greater than or equal to 1."),
        ({"rate_per_s": 1, "many": (1, -1)}, "field 'Outer.many[1]': is -1; input should be greater than 0."),
        (
            {"rate_per_s": 1, "inner": {"size": 0}},
            "field 'Inner.size': is 0; input should be greater than or equal to 1.",
        ),
    ],
)
def test_a_record_that_cannot_be_says_why_in_a_sentence(given, sentence):
    with pytest.raises(InputError) as caught:
        Outer(**given)
    assert str(caught.value) == sentence
    assert caught.value.__suppress_context__


def test_fields_are_given_by_name():
    with pytest.raises(InputError, match=r"'fast' has no name; name the fields of Hockney: alpha_s, bytes_per_s"):
        Hockney("fast")


CEILINGS = {
    "processes": 2,
    "block_bytes": 1,
    "raw_pair_bytes_per_s": 1.0,
    "gloo_pair_bytes_per_s": 1.0,
    "sum_bytes_per_s": 1.0,
    "copy_bytes_per_s": 1.0,
    "lateness_s": 0.0,
}


@pytest.mark.parametrize(
    "bad", [-1, math.nan, "fast", None, [], 10**400, 10**5000, {"a": 1}], ids=lambda bad: shown(bad)[:12]
)
@pytest.mark.parametrize(
    ("kind", "good", "fields"),
    [
        (Hockney, {"bytes_per_s": 1.0}, ("alpha_s", "bytes_per_s")),
        (LogGP, dict.fromkeys(("latency_s", "overhead_s", "gap_s", "per_byte_s"), 1.0), ("gap_s", "per_byte_s")),
        (Resource, {"name": "nic", "kind": "nic", "bytes_per_s": 1.0}, ("bytes_per_s",)),
        (Network, {"resources": (), "endpoints": ()}, ("alpha_s", "local_alpha_s", "resources", "links")),
        (Background, {"source": 0, "target": 1, "bytes": 1.0}, ("source", "target", "bytes", "start_s")),
        (Death, {"node": 0, "time_s": 1.0}, ("node", "time_s")),
        (Kill, {"node": 0, "at_s": 1.0}, ("node", "at_s")),
        (Stop, {"node": 0, "at_s": 1.0}, ("node", "at_s")),
        (Flip, {"node": 0, "block": 0}, ("node", "block")),
        (Swap, {"node": 0, "block": 0, "other": 1}, ("node", "block", "other")),
        (Scale, {}, ("sigma", "theta")),
        (Ceilings, CEILINGS, tuple(CEILINGS)),
        (Poisson, {"rate_per_s": 1.0}, ("rate_per_s",)),
        (Limits, {}, ("rows", "file_bytes")),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_record_that_users_fill_in_does(kind, good, fields, bad):
    kind(**good)
    for field in fields:
        if field in ("resources", "links") and bad == []:
            continue  # may well be
        with pytest.raises(InputError) as caught:
            kind(**{**good, field: bad})
        text = str(caught.value)
        assert text.startswith(f"field '{kind.__name__}.{field}': is ")
        assert text.endswith(".")
        assert "\n" not in text
        assert len(text) < 250


@pytest.mark.parametrize(
    "bad", [0, -1.5, math.nan, math.inf, 10**400, "3", True, None, 1j, np.array([1.0, 2.0])], ids=str
)
def test_numbers_that_are_not_above_zero(bad):
    with pytest.raises(InputError, match=r"field 'x': is .*; give a finite number above 0\.$"):
        positive(bad, "x")


def test_numbers_that_are():
    unit = Quantity(value=2.5, unit="s", status="user", source="a test")
    given = [3, 2.5, np.float32(0.5), np.int64(7), np.array(4.0), unit]
    assert [positive(value, "x") for value in given] == [3.0, 2.5, 0.5, 7.0, 4.0, 2.5]
    assert not_negative(0, "x") == 0.0
    with pytest.raises(InputError, match="0 or more"):
        not_negative(-1e-9, "x")


@pytest.mark.parametrize("bad", [0, 11, 2.0, 2.5, math.nan, math.inf, "3", True, None], ids=str)
def test_numbers_that_are_not_whole_or_out_of_bounds(bad):
    with pytest.raises(InputError, match=r"field 'n': is .*; give a whole number from 1 to 10\.$"):
        whole(bad, "n", 1, 10)


def test_whole_numbers():
    found = whole(np.int32(10), "n", 1, 10)
    assert (found, type(found)) == (10, int)
    assert whole(2**63 - 1, "n") == 2**63 - 1
    with pytest.raises(InputError, match="of 0 or more"):
        whole(2**63, "n")


@takes_records
def doubled(speed: Quantity, least: Quantity | None = None, times: int = 2) -> float:
    return max(float(speed) * times, float(least or 0))


def test_a_function_that_takes_records_refuses_other_things():
    speed = Quantity(value=2.5, unit="m/s", status="user", source="a test")
    assert doubled(speed) == doubled(speed, None, 2) == doubled(least=speed, speed=speed) == 5.0
    assert doubled.__name__ == "doubled"
    for wrong in (2.5, None, "fast"):
        with pytest.raises(InputError, match=r"field 'speed': is .*; give an object of type Quantity\.$"):
            doubled(wrong)
    with pytest.raises(InputError, match="field 'least'"):
        doubled(speed, least=3)
    with pytest.raises(TypeError, match="positional"):
        doubled(speed, None, 2, 3)


def test_what_is_shown_stays_on_one_short_line():
    assert shown(np.float64(2.5)) == "2.5"
    assert shown("a\nb") == r"'a\nb'"
    assert len(shown(np.arange(1000))) == 60
    assert shown(10**5000) == "a number of thousands of digits"


@pytest.mark.parametrize("name", ["y" * 256, "é" * 128, "/".join(["y" * 100] * 60), "a\0b", 5, None])
def test_what_no_file_system_takes_for_a_path_is_refused(name):
    """The longest name of Linux has 255 bytes, the longest path 4096."""
    with pytest.raises(InputError, match=r"field 'folder': is .*, which is (too long for a path|not a path); give"):
        given_path(name, "folder")
    assert given_path("y" * 255, "folder").name == "y" * 255
