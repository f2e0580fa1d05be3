"""Faults planted in SimPy's clusters that change their size are seen: the compiled engine then says otherwise."""

from math import inf

import numpy as np
import pytest
from scaling_cases import any_scenarios
from serving_faults import comes_behind
from serving_outcomes import differences

from workbench.serving.model.engine import run_compiled
from workbench.serving.model.scaled import DRAINING, STARTING, UP, WARM
from workbench.serving.simulated import autoscaler, simulate
from workbench.serving.simulated.autoscaler import Autoscaler
from workbench.serving.simulated.fleet import Fleet
from workbench.serving.simulated.host_cache import HostCache
from workbench.serving.simulated.load import Load
from workbench.serving.simulated.operation import Operation
from workbench.serving.simulated.router import Router
from workbench.serving.simulated.row import Row
from workbench.serving.simulated.shared_ssd import SharedSSD
from workbench.serving.simulated.windows import Windows


def failures_come_after_loads(patch):
    comes_behind(patch, "fails", "ready")


def loads_come_after_ticks(patch):
    comes_behind(patch, "ready", "ticks")


def warm_rows_end_after_ticks(patch):
    comes_behind(patch, "expires", "ticks")


def ticks_come_after_arrivals(patch):
    comes_behind(patch, "ticks", "arrives")


def ticks_come_after_steps(patch):
    comes_behind(patch, "ticks", "ends")


def all_come_up_before_any_is_handed_a_request(patch):
    come_up, hand_out = Fleet.come_up, Router.hand_out

    def later(self, row, load=None):
        patch.setattr(Router, "hand_out", lambda router, model: None)
        come_up(self, row, load)
        patch.setattr(Router, "hand_out", hand_out)
        moment = self.clock.at(self.clock.now, self.instants.ticks)
        moment.callbacks.append(lambda _: self.router.hand_out(row.model))

    patch.setattr(Fleet, "come_up", later)


def the_last_warm_row_comes_back_first(patch):
    of = Fleet.of

    def turned(self, model, *wanted):
        rows = of(self, model, *wanted)
        return rows[::-1] if wanted == (WARM,) else rows

    patch.setattr(Fleet, "of", turned)


def hosts_that_cache_the_model_do_not_come_first(patch):
    take = Autoscaler._take_free
    patch.setattr(
        Autoscaler, "_take_free", lambda self, model, count, cached: take(self, model, count, [True] * len(cached))
    )


def the_first_of_equals_drains(patch):
    def shrink(self, model, count):
        for row in sorted(self.fleet.of(model, UP), key=lambda row: (row.instance.outstanding, row.index))[:count]:
            self.fleet.drain(row)

    patch.setattr(Autoscaler, "_shrink", shrink)


def draining_rows_come_back_in_order(patch):
    of = Fleet.of

    class InOrder(list):
        def sort(self, key):
            pass

    patch.setattr(Fleet, "of", lambda self, *wanted: InOrder(of(self, *wanted)))


def places_of_the_latest_warm_rows_are_taken(patch):
    steal = Autoscaler._take_from_others

    def turned(self, model, count):
        for row in self.fleet.rows:
            row.warm_since_s = -row.warm_since_s
        rows = steal(self, model, count)
        for row in self.fleet.rows:
            row.warm_since_s = -row.warm_since_s
        return rows

    patch.setattr(Autoscaler, "_take_from_others", turned)


def sources_end_while_they_are_read(patch):
    patch.setattr(Row, "uses", property(lambda self: 0, lambda self, uses: None))


def rows_that_start_are_sources(patch):
    of = Fleet.of

    def more(self, model, *wanted):
        return of(self, model, *wanted, *([STARTING] if wanted == (UP, DRAINING, WARM) else []))

    patch.setattr(Fleet, "of", more)


def operations_go_on_without_sources(patch):
    lose = Operation.lose_source
    patch.setattr(Operation, "lose_source", lambda self, row: lose(self, row) and False)


def operations_begin_again_when_one_source_is_lost(patch):
    lose = Operation.lose_source

    def lose_source(self, row):
        lost = row in self.sources
        lose(self, row)
        if lost and self.loads:
            self.release()
        return lost and bool(self.loads)

    patch.setattr(Operation, "lose_source", lose_source)


def an_ssd_is_as_fast_for_each(patch):
    patch.setattr(SharedSSD, "_share", lambda self: self.bytes_per_s)


def lost_reads_go_on(patch):
    patch.setattr(SharedSSD, "stop", lambda self, load: None)


def reads_are_not_kept_in_memory(patch):
    patch.setattr(HostCache, "put", lambda self, model: None)


def the_entry_used_last_goes(patch):
    trim = HostCache.trim

    def turned(self):
        has = HostCache.has
        models = [model for model in list(self.last_use_s) if has(self, model)]
        while sum(self.size[model] for model in models) > self.capacity:
            free = [(self.last_use_s[model], model) for model in models if not self.held(model)]
            if not free:
                return
            models.remove(max(free)[1])
            del self.last_use_s[max(free)[1]]
        trim(self)

    patch.setattr(HostCache, "trim", turned)


def entries_that_rows_hold_go_too(patch):
    trim = HostCache.trim

    def reckless(self):
        held, self.held = self.held, lambda model: False
        trim(self)
        self.held = held

    patch.setattr(HostCache, "trim", reckless)


def entries_that_ran_out_come_back(patch):
    def has(self, model):
        return model in self.last_use_s and (
            self.held(model) or self.clock.now - self.last_use_s[model] < self.ttl_s[model]
        )

    patch.setattr(HostCache, "has", has)


def entries_last_a_moment_longer(patch):
    start = HostCache.__init__

    def __init__(self, capacity, ttl_s, *rest):
        start(self, capacity, [np.nextafter(time_s, inf) for time_s in ttl_s], *rest)

    patch.setattr(HostCache, "__init__", __init__)


def warm_rows_that_end_do_not_count_as_use(patch):
    patch.setattr(HostCache, "use", lambda self, model: None)


def one_tick_is_enough(patch):
    start = Windows.__init__
    patch.setattr(Windows, "__init__", lambda self, up_ticks, down_ticks: start(self, 1, 1))


def the_latest_want_counts(patch):
    settle = Windows.settle
    patch.setattr(Windows, "settle", lambda self, want, n: want if settle(self, want, n) != n else n)


def draining_rows_are_not_seen(patch):
    class Blind:
        def __init__(self, fleet):
            self.fleet = fleet

        def of(self, model, *states):
            return self.fleet.of(model, UP)

    look = autoscaler.signals
    patch.setattr(autoscaler, "signals", lambda model, router, fleet, n: look(model, router, Blind(fleet), n))


def a_sample_one_tick_older(patch):
    start = Autoscaler.__init__

    def __init__(self, given, *rest):
        start(self, given._replace(scrape_ticks=given.scrape_ticks + 1), *rest)
        self.patience -= 1

    patch.setattr(Autoscaler, "__init__", __init__)


def ticks_go_on_when_all_is_done(patch):
    live = Autoscaler.live
    patch.setattr(Autoscaler, "live", lambda self, done, nothing: live(self, lambda: False, nothing))


def one_more_tick_without_hope(patch):
    start = Autoscaler.__init__

    def __init__(self, *given):
        start(self, *given)
        self.patience += 1

    patch.setattr(Autoscaler, "__init__", __init__)


def requests_done_while_draining_do_not_count(patch):
    helps = Load.helps
    patch.setattr(Load, "helps", lambda self, *step: helps(self, *step) if self.row.state == UP else None)


FAULTS = [
    failures_come_after_loads, loads_come_after_ticks, warm_rows_end_after_ticks, ticks_come_after_arrivals,
    ticks_come_after_steps, all_come_up_before_any_is_handed_a_request, the_last_warm_row_comes_back_first,
    hosts_that_cache_the_model_do_not_come_first, the_first_of_equals_drains, draining_rows_come_back_in_order,
    places_of_the_latest_warm_rows_are_taken, sources_end_while_they_are_read, rows_that_start_are_sources,
    operations_go_on_without_sources, operations_begin_again_when_one_source_is_lost, an_ssd_is_as_fast_for_each,
    lost_reads_go_on, reads_are_not_kept_in_memory, the_entry_used_last_goes, entries_that_rows_hold_go_too,
    entries_that_ran_out_come_back, entries_last_a_moment_longer, warm_rows_that_end_do_not_count_as_use,
    one_tick_is_enough, the_latest_want_counts, draining_rows_are_not_seen, a_sample_one_tick_older,
    ticks_go_on_when_all_is_done, one_more_tick_without_hope, requests_done_while_draining_do_not_count,
]  # fmt: skip


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_found(plant, monkeypatch):
    plant(monkeypatch)
    assert any(differences(run_compiled(lowered), simulate(lowered)) for lowered in any_scenarios())
