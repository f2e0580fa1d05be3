"""A start for real: from nothing and with all but the weights made beforehand; the right first token, never early."""

from importlib.util import find_spec

import pytest

from workbench.errors import InputError
from workbench.executor.faults import RunFailed, RunStopped
from workbench.scaling.real import measure_start, starting

pytestmark = [
    pytest.mark.torch,
    pytest.mark.real,
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: real runs need it"),
]


@pytest.mark.parametrize(
    ("beforehand", "before"),
    [(False, ["process", "import of torch", "engine", "group"]), (True, ["process"])],
)
def test_a_start_has_its_parts_and_no_link_is_early(beforehand, before):
    made = measure_start(0.4, 0.05, beforehand=beforehand)
    parts = dict(made.parts.iter_rows())
    assert list(parts) == [*before, "weights", "first token"]
    assert all(seconds > 0 for seconds in parts.values())
    assert parts["weights"] >= 0.4 - 1e-3
    assert parts["first token"] >= 0.05
    assert made.weight_bytes > 20e6


def test_another_first_token_is_refused(monkeypatch):
    true = starting.gather

    def wrong(*arguments):
        (found,) = true(*arguments)
        return [found._replace(token=found.token + 1)] if hasattr(found, "token") else [found]

    monkeypatch.setattr(starting, "gather", wrong)
    with pytest.raises(RunFailed, match="another first token"):
        measure_start(0.1, 0.01, beforehand=True)


def test_a_start_can_be_stopped():
    with pytest.raises(RunStopped):
        measure_start(20.0, 0.01, beforehand=True, stop=lambda: True)


def test_a_link_takes_time():
    with pytest.raises(InputError, match="load_s"):
        measure_start(0.0, 0.01, beforehand=True)
