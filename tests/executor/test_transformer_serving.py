"""What travels between nodes beside the weights, and how a worker hears its parent while it computes."""

import time
from importlib.util import find_spec

import pytest
import worker_tasks
from hypothesis import given
from hypothesis import strategies as st

from workbench.executor.gathering import gather
from workbench.executor.transformer_serving.orders import MOST_IN_BATCH, Item, Pace, Work, carries, header_of, work_of

NUMBER = st.integers(0, 2**40)


@given(NUMBER, NUMBER, st.integers(0, 500), st.lists(st.tuples(NUMBER, NUMBER, NUMBER), max_size=MOST_IN_BATCH))
def test_a_pass_without_activations_carries_the_last_token_of_each_request(route, batch, segment, rows):
    items = tuple(Item(request, (token,), left) for request, token, left in rows)
    work = Work(route, batch, segment, items, (1,) * len(items), None)
    header = header_of(work)
    assert not carries(header)
    assert work_of(header) == work


@given(st.lists(st.tuples(NUMBER, st.integers(1, 2**20), NUMBER), min_size=1, max_size=MOST_IN_BATCH))
def test_a_pass_with_activations_carries_how_many_each_request_has(rows):
    items = tuple(Item(request, (1,) * 3, left) for request, _, left in rows)
    sizes = tuple(size for _, size, _ in rows)
    header = header_of(Work(3, 4, 5, items, sizes, "activations"))
    assert carries(header)
    found = work_of(header)
    assert found.sizes == sizes
    assert found.hidden is None
    assert [(item.request, item.left) for item in found.items] == [(item.request, item.left) for item in items]


def test_a_pass_takes_at_least_as_long_as_reading_the_weights():
    pace = Pace(least_s=0.01, token_s=0.001)
    assert pace.pass_s(1) == pace.pass_s(10) == 0.01
    assert pace.pass_s(30) == pytest.approx(0.03)


@pytest.mark.torch
@pytest.mark.real
@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: real runs need it")
def test_a_task_can_have_its_words_as_they_come_and_the_next_task_hears_again(pool):
    with pool.lease(1) as workers:
        workers[0].give(worker_tasks.count_words)
        while not workers[0].connection.poll(0.1):
            time.sleep(0.01)
        for word in ("one", "two", "end"):
            workers[0].tell(word)
        assert gather(workers, pool.beats, 10.0) == [["one", "two", "end"]]
        workers[0].give(worker_tasks.wait)
        workers[0].tell("heard")
        assert gather(workers, pool.beats, 10.0) == ["heard"]
