"""The global parameter pool: at most one copy in memory, never no copy at all, whatever comes, goes and fails."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from workbench.errors import InputError, UnknownName
from workbench.scaling.model.parameter_pool import ParameterPool

MODELS = ("m", "n", "o")


class Pool(RuleBasedStateMachine):
    """Memory for all models on every host, so that nothing ever has to be refused."""

    def __init__(self):
        super().__init__()
        self.pool = ParameterPool({f"host {i}": 300.0 for i in range(5)}, dict.fromkeys(MODELS, 100.0))
        self.pool.spread()
        self.instances: list[str] = []
        self.begun = 0

    @rule(model=st.sampled_from(MODELS), place=st.integers(0, 99))
    def deploy(self, model, place):
        hosts = list(self.pool.room)
        self.begun += 1
        self.pool.deploy(model, hosts[place % len(hosts)], f"instance {self.begun}")
        self.instances.append(f"instance {self.begun}")

    @precondition(lambda self: self.instances)
    @rule(place=st.integers(0, 99))
    def reclaim(self, place):
        self.pool.reclaim(self.instances.pop(place % len(self.instances)))

    @rule(model=st.sampled_from(MODELS))
    def update(self, model):
        self.pool.update(model)

    @precondition(lambda self: len(self.pool.room) > 1)
    @rule(place=st.integers(0, 99))
    def fail(self, place):
        host = list(self.pool.room)[place % len(self.pool.room)]
        self.pool.fail(host)
        left = {copy.instance for copy in self.pool.copies}
        self.instances = [instance for instance in self.instances if instance in left]

    @invariant()
    def one_copy_in_memory_at_most_and_one_somewhere_at_least(self):
        for model in MODELS:
            memory = self.pool.in_memory(model)
            assert len(memory) <= 1
            assert self.pool.sources(model)
            assert {copy.version for copy in self.pool.sources(model)} == {self.pool.version[model]}
            served = any(copy.instance for copy in self.pool.sources(model))
            assert len(memory) == (0 if served else 1)

    @invariant()
    def memory_holds_what_is_counted(self):
        assert all(0 <= self.pool.used(host) <= 300 for host in self.pool.room)
        assert {copy.host for copy in self.pool.copies} <= set(self.pool.room)
        assert len(set(self.pool.copies)) == len(self.pool.copies)


TestPool = Pool.TestCase


def test_copies_are_spread_evenly():
    pool = ParameterPool({"a": 200.0, "b": 200.0}, dict.fromkeys("mnop", 100.0))
    pool.spread()
    assert pool.used("a") == pool.used("b") == 200


def test_a_lost_only_copy_is_made_again_elsewhere():
    pool = ParameterPool({"a": 100.0, "b": 100.0}, {"m": 60.0})
    (step,) = pool.spread()
    steps = pool.fail(step.copy.host)
    assert [(step.kind, step.copy.host) for step in steps] == [("lost", "a"), ("restore", "b")]
    assert pool.unreachable() == []
    assert [step.kind for step in pool.fail("b")] == ["lost"]
    assert pool.unreachable() == ["m"]


def test_hosts_that_fail_at_once_give_each_other_nothing():
    pool = ParameterPool(dict.fromkeys("abc", 100.0), {"m": 60.0}, copies=2)
    pool.spread()
    steps = pool.fail("a", "b")
    assert [(step.kind, step.copy.host) for step in steps] == [("lost", "a"), ("lost", "b"), ("restore", "c")]


def test_old_versions_are_never_a_source():
    pool = ParameterPool({"a": 100.0}, {"m": 60.0})
    pool.spread()
    pool.deploy("m", "a", "instance 0")
    assert [step.kind for step in pool.update("m")] == ["restore"]
    (source,) = pool.sources("m")
    assert (source.version, source.instance) == (1, "")
    assert [copy.instance for copy in pool.sources("m", 0)] == ["instance 0"]


def test_more_or_fewer_copies():
    two = ParameterPool({"a": 100.0, "b": 100.0}, {"m": 60.0}, copies=2)
    assert len(two.spread()) == 2
    two.deploy("m", "a", "instance 0")
    assert len(two.in_memory("m")) == 1
    none = ParameterPool({"a": 100.0}, {"m": 60.0}, copies=0)
    assert none.spread() == []
    assert none.unreachable() == ["m"]
    none.deploy("m", "a", "i")
    assert [step.kind for step in none.reclaim("i")] == ["drop"]


def test_refusals():
    pool = ParameterPool({"a": 100.0}, {"m": 60.0, "n": 60.0})
    pool.spread()  # there is room for one of them
    assert pool.unreachable() == ["n"]
    pool.deploy("n", "a", "i")
    with pytest.raises(InputError, match="last copy of n"):
        pool.reclaim("i")
    assert pool.sources("n")  # and nothing was lost
    with pytest.raises(InputError, match="reclaim it first"):
        pool.deploy("n", "a", "i")
    for call in (lambda: pool.deploy("x", "a", "j"), lambda: pool.fail("z"), lambda: pool.reclaim("k")):
        with pytest.raises(UnknownName):
            call()
    with pytest.raises(InputError, match="name"):
        pool.deploy("n", "a", "")
    for copies in (9, 1.5, True):
        with pytest.raises(InputError, match=r"'copies': .* from 0 to 3"):
            ParameterPool({"a": 1.0}, {}, copies=copies)
    for room, size in ((-5.0, 1.0), (float("nan"), 1.0), (1.0, -1.0), (1.0, 0.0), (1.0, float("inf"))):
        with pytest.raises(InputError, match=r"hosts\['a'\]|bytes_of\['m'\]"):
            ParameterPool({"a": room}, {"m": size})
    with pytest.raises(InputError, match="empty"):
        ParameterPool({}, {})
