"""The exact test vectors of tests/oracles, once for each case of a file."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "oracles"


def number(text):
    """A value of an oracle file as a float; text that is no number stays."""
    try:
        return float(text)
    except (TypeError, ValueError):
        return text


def oracle(file, model=None):
    """Parametrise a test by `case`: params, expect and approximation as floats, `exact` as decimals."""
    cases = [case for case in json.loads((FOLDER / file).read_text())["cases"] if model in (None, case["model"])]
    assert cases, f"{file} has no cases of {model}"
    for case in cases:
        case["exact"] = {key: Decimal(value) for key, value in case["expect"].items()}
        case["params"] = {
            key: [number(item) for item in value] if isinstance(value, list) else number(value)
            for key, value in case["params"].items()
        }
        for part in ("expect", "approximation"):
            case[part] = {key: number(value) for key, value in case.get(part, {}).items()}
    return pytest.mark.parametrize("case", cases, ids=[case["id"] for case in cases])


def exactly(found, expected, rel=1e-9):
    """The same names, and values that agree to 1e-9 relative."""
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=rel, abs=1e-300), name
