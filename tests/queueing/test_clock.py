"""The clock reaches exact times, in a fixed order, with the pinned SimPy."""

from importlib.metadata import version

from hypothesis import given
from hypothesis import strategies as st

from workbench.queueing.simulated import Clock


def test_simpy_is_the_version_whose_private_names_are_used():
    assert version("simpy") == "4.1.2"


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_times_are_met_to_the_bit(times):
    clock, met = Clock(), []

    def sleeper(time_s):
        yield clock.at(time_s, 2)
        met.append((clock.now, time_s))

    for time_s in times:
        clock.process(sleeper(time_s))
    clock.run()
    assert all(now == wanted for now, wanted in met)
    assert [now for now, _ in met] == sorted(times)


def test_priorities_order_what_happens_at_one_instant():
    clock, order = Clock(), []
    for priority in (9, 2, -1, 3):
        clock.at(1.0, priority).callbacks.append(lambda _, priority=priority: order.append(priority))
    clock.run()
    assert order == [-1, 2, 3, 9]
