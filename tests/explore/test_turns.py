"""Real runs take turns: two never overlap, and one that waits says so and can be stopped."""

import threading

import pytest

from workbench.catalogue import running, spec
from workbench.catalogue.context import Stopped
from workbench.explore.explorer import Explorer
from workbench.explore.turns import real_turn


def test_two_real_runs_never_overlap_and_the_second_says_that_it_waits():
    said, order, first_is_on, second_waits = [], [], threading.Event(), threading.Event()

    def first():
        with real_turn(threading.Event(), said.append):
            first_is_on.set()
            assert second_waits.wait(30)
            order.append("first ends")

    def tell(text):
        said.append(text)
        second_waits.set()

    thread = threading.Thread(target=first)
    thread.start()
    assert first_is_on.wait(30)
    with real_turn(threading.Event(), tell):
        order.append("second begins")
    thread.join(30)
    assert said == ["waiting for the other real run"]
    assert order == ["first ends", "second begins"]


def test_a_waiting_real_run_can_be_stopped():
    stop = threading.Event()
    with real_turn(threading.Event(), lambda _: None), pytest.raises(Stopped), real_turn(stop, lambda _: stop.set()):
        pytest.fail("two real runs at once")
    with pytest.raises(Stopped), real_turn(stop, lambda _: None):
        pytest.fail("it was stopped before it began")
    with real_turn(threading.Event(), lambda _: None):
        pass


def test_a_real_run_of_an_explorer_waits_for_its_turn(monkeypatch):
    explorer = Explorer(spec.find("lambdascale/paced-multicast"), {})
    real = running.run_unjudged

    def run(entry, values, *, backends, stop=None, progress=None):
        ran.append(backends)
        return real(entry, values, backends=[name for name in backends if name != "torch"])

    ran = []
    monkeypatch.setattr(running, "run_unjudged", run)
    with real_turn(threading.Event(), lambda _: None):
        explorer.buttons["torch"].click()
        for _ in range(3000):
            if "waiting for the other real run" in explorer._status.value:
                break
            explorer.wait(0.01)
        assert "waiting for the other real run" in explorer._status.value
        assert ran == []
    explorer.wait(30)
    assert [backends[-1] for backends in ran] == ["torch"]
