"""What a node holds: the meeting point of its two threads; and sleeping until an instant."""

import threading
import time

import pytest

from workbench.errors import UnknownName
from workbench.executor.clock import check_clock, sleep_until
from workbench.executor.held import Broken, Held


def test_a_block_that_is_held_is_not_waited_for():
    held = Held()
    held.add(3, 1.5)
    assert held.wait(3) == 1.5
    assert held.blocks() == [3]


def test_a_waiting_thread_wakes_when_its_block_comes():
    held, seen = Held(), []
    thread = threading.Thread(target=lambda: seen.append(held.wait(2)))
    thread.start()
    held.add(1, 0.5)
    held.add(2, 0.75)
    thread.join(5)
    assert seen == [0.75]


def test_breaking_off_wakes_whoever_waits_with_the_first_reason():
    held, seen = Held(), []

    def wait():
        try:
            held.wait(0)
        except Broken as error:
            seen.append(str(error))

    thread = threading.Thread(target=wait)
    thread.start()
    assert held.break_off("a peer died")
    assert not held.break_off("something else")
    thread.join(5)
    assert seen == ["a peer died"]


def test_a_block_that_came_before_is_refused_after_breaking_off():
    held = Held()
    held.add(0, 0.0)
    held.break_off("over")
    with pytest.raises(Broken, match="over"):
        held.wait(0)


def test_sleeping_never_ends_early():
    instant_s = time.monotonic() + 0.12
    assert sleep_until(instant_s, lambda: None) >= instant_s
    assert sleep_until(instant_s, lambda: None) >= instant_s


def test_a_long_sleep_ends_when_the_run_is_broken_off():
    held = Held()
    held.break_off("over")
    start_s = time.monotonic()
    with pytest.raises(Broken):
        sleep_until(start_s + 60, held.check)
    assert time.monotonic() - start_s < 30


def test_unknown_clocks_are_refused():
    check_clock("stamped")
    with pytest.raises(UnknownName, match="stamped"):
        check_clock("stampd")
