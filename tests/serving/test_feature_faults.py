"""Faults planted in SimPy's pipelines, ranks, prefix caches and migrations are seen: compiled code says otherwise."""

from collections.abc import Iterator
from math import nextafter

import numpy as np
import pytest
from scaling_cases import piped_scenarios
from serving_cases import scenario, with_prefixes, with_ranks, with_roles
from serving_faults import comes_behind
from serving_outcomes import differences

from workbench.serving.model import Lowered
from workbench.serving.model.engine import run_compiled
from workbench.serving.model.scaled import DRAINING, PIPED, STARTING, UP, WARM
from workbench.serving.simulated import decoder, instance, links, router, simulate
from workbench.serving.simulated.decoder import Decoder
from workbench.serving.simulated.fleet import Fleet
from workbench.serving.simulated.instance import Instance
from workbench.serving.simulated.links import Links
from workbench.serving.simulated.migrations import Migrations
from workbench.serving.simulated.operation import Operation
from workbench.serving.simulated.prefiller import Prefiller
from workbench.serving.simulated.prefix_cache import PrefixCache
from workbench.serving.simulated.request import Request
from workbench.serving.simulated.router import Router
from workbench.serving.simulated.weights import Weights


def ranked() -> Iterator[Lowered]:
    for seed in range(300):
        rng = np.random.default_rng(seed)
        yield with_ranks(rng, scenario(rng))


def cached() -> Iterator[Lowered]:
    for seed in range(300):
        rng = np.random.default_rng(seed)
        yield with_prefixes(rng, with_ranks(rng, scenario(rng)))


def migrated() -> Iterator[Lowered]:
    for seed in range(300):
        rng = np.random.default_rng(seed)
        yield with_ranks(rng, with_roles(rng, scenario(rng)))


def piped() -> Iterator[Lowered]:
    for seed, lowered in enumerate(piped_scenarios()):
        rng = np.random.default_rng(seed)
        yield with_prefixes(rng, with_ranks(rng, lowered))


def pipelines_form_after_ticks(patch):
    comes_behind(patch, "forms", "ticks")


def copies_are_there_after_pipelines_form(patch):
    comes_behind(patch, "ready", "forms")


def members_keep_their_kv_at_the_switch(patch):
    def switch(self, router):
        self.form = self.own_form

    patch.setattr(Instance, "switch", switch)


def who_waited_goes_first_after_the_switch(patch):
    def switch(self, router):
        for request in self.running:
            request.moves += 1
        waited = len(self.queue)
        lost = self._lose()
        self.queue.extend(sorted(lost[len(lost) - waited :] + lost[: len(lost) - waited], key=instance.RANK))
        self.recover(router)

    patch.setattr(Instance, "switch", switch)


def a_switch_moves_who_waits_too(patch):
    switch = Instance.switch

    def counted(self, router):
        for request in self.queue:
            request.moves += 1
        switch(self, router)

    patch.setattr(Instance, "switch", counted)


def members_go_on_after_a_loss(patch):
    patch.setattr(Weights, "_break_pipeline", lambda self, lost: None)


def all_pipelines_of_an_operation_break(patch):
    members = Operation.members
    patch.setattr(Operation, "members", lambda self, pipeline=None: members(self))


def broken_pipelines_form(patch):
    class Forgetful(set):
        def add(self, pipeline):
            pass

    begin = Operation.__init__

    def __init__(self, *given):
        begin(self, *given)
        self.broken = Forgetful()

    patch.setattr(Operation, "__init__", __init__)


def members_send(patch):
    of = Fleet.of

    def more(self, model, *states):
        return of(self, model, *states, *((PIPED,) if states == (UP, DRAINING, WARM) else ()))

    patch.setattr(Fleet, "of", more)


def members_count_as_up_only(patch):
    of = Fleet.of

    def other(self, model, *states):
        if states == (STARTING, PIPED):
            states = (STARTING,)
        elif states == (UP,):
            states = (UP, PIPED)
        return of(self, model, *states)

    patch.setattr(Fleet, "of", other)


def members_are_as_fast_as_alone(patch):
    recover = Instance.recover
    patch.setattr(Instance, "recover", lambda self, router, form=None: recover(self, router))


def at_the_router_all_are_equal(patch):
    patch.setattr(router, "join_last", lambda line, request: line.append(request))


def who_is_thrown_out_stands_before_all(patch):
    patch.setattr(router, "join_first", lambda line, request: line.appendleft(request))


def in_queues_all_are_equal(patch):
    def give(self, request):
        request.instance = self.index
        self.queue.append(request)
        self.wake()

    patch.setattr(Instance, "give", give)


def who_runs_is_in_order_of_admission(patch):
    join_last = instance.join_last
    patch.setattr(
        instance, "join_last", lambda line, r: line.append(r) if isinstance(line, list) else join_last(line, r)
    )


def who_is_evicted_stands_behind_its_rank(patch):
    patch.setattr(instance, "join_first", instance.join_last)


def nobody_goes_for_a_lower_rank(patch):
    admit = Instance._admit

    def patient(self):
        ranks = [request.rank for request in self.running]
        for request in self.running:
            request.rank = -1
        admit(self)
        for request, rank in zip(self.running, ranks, strict=False):
            request.rank = rank

    patch.setattr(Instance, "_admit", patient)


def a_hit_is_no_use(patch):
    def hit(self, prefix):
        count = next((k for k, one in enumerate(prefix) if one not in self.ids), len(prefix))
        return count * self.tokens_each

    patch.setattr(PrefixCache, "hit", hit)


def the_first_block_is_used_first(patch):
    use = PrefixCache._use
    patch.setattr(PrefixCache, "_use", lambda self, prefix: use(self, prefix[::-1]))


def the_last_blocks_are_kept(patch):
    keep = PrefixCache.keep
    patch.setattr(
        PrefixCache, "keep", lambda self, prefix: keep(self, prefix[-self.capacity :] if self.capacity else [])
    )


def a_gap_does_not_matter(patch):
    def hit(self, prefix):
        there = [one for one in prefix if one in self.ids]
        self._use(there)
        return len(there) * self.tokens_each

    patch.setattr(PrefixCache, "hit", hit)


def nothing_of_a_prompt_is_computed(patch):
    def start_from(self, cached):
        self.stored = min(cached, self.need)
        self.cached += self.stored

    patch.setattr(Request, "start_from", start_from)


def prefixes_outlive_a_failure(patch):
    patch.setattr(PrefixCache, "clear", lambda self: None)


def prompts_are_kept_from_admission_on(patch):
    hit = PrefixCache.hit

    def eager(self, prefix):
        found = hit(self, prefix)
        self.keep(prefix)
        return found

    patch.setattr(PrefixCache, "hit", eager)


def blocks_are_free_when_sending_begins(patch):
    start = Migrations.start

    def early(self, request, target):
        start(self, request, target)
        source = self.instances[request.prefilled_on]
        source.blocks.free += source.leaving[request]
        source.leaving[request] = 0
        source.wake()

    patch.setattr(Migrations, "start", early)


def who_is_sent_counts_where_it_was_prefilled(patch):
    patch.setattr(Prefiller, "outstanding", property(lambda self: Instance.outstanding.fget(self) + len(self.leaving)))


def decode_lines_are_in_order_of_prompts(patch):
    patch.setattr(Router, "pass_on", lambda self, request: self.decode_lines[request.model].append(request))


def who_comes_takes_no_slot(patch):
    def expects(self, request):
        members = len(self.running) + len(self.landed)
        room = self.takes(request) and not self.queue and members < self.slots
        return room and self._blocks_for(request) <= self.blocks.free

    patch.setattr(Decoder, "expects", expects)


def who_was_evicted_does_not_hold_others_up(patch):
    def expects(self, request):
        members = len(self.running) + len(self.coming) + len(self.landed)
        return self.takes(request) and members < self.slots and self._blocks_for(request) <= self.blocks.free

    patch.setattr(Decoder, "expects", expects)


def who_lands_waits_for_blocks_of_others(patch):
    start = Instance._start

    def late(self):
        step = start(self)
        for request in self.landed:
            decoder.join_last(self.running, request)
        self.landed.clear()
        return step or start(self)

    patch.setattr(Decoder, "_start", late)


def every_transfer_gets_an_equal_part_of_its_source(patch):
    share_out = links.share_out

    def unfair(flows, capacity):
        share_out(flows, capacity)
        for flow in flows:
            most = capacity[flow.ports[0]] / sum(other.ports[0] == flow.ports[0] for other in flows)
            flow.rate = min(flow.rate, most)

    patch.setattr(links, "share_out", unfair)


def latency_comes_on_top(patch):
    end_s = Links._end_s
    patch.setattr(Links, "_end_s", lambda self, flow: end_s(self, flow) + self.latency_s * (flow.size > 0))


def transfers_land_after_steps_start(patch):
    comes_behind(patch, "lands", "starts")


def transfers_land_before_failures(patch):
    comes_behind(patch, "fails", "lands")


def a_transfer_ends_a_moment_later(patch):
    end_s = Links._end_s
    patch.setattr(Links, "_end_s", lambda self, flow: nextafter(end_s(self, flow), np.inf))


def what_a_failed_target_would_have_got_is_computed_again(patch):
    stop = Migrations.stop

    def all_again(self, failing):
        stop(self, failing)
        if isinstance(failing, Decoder):
            for request in [r for r in self.router.decode_lines[failing.model] if r.instance == failing.index]:
                self.router.decode_lines[failing.model].remove(request)
                source = self.instances[request.prefilled_on]
                source.let_go(request)
                request.forget()
                router.join_first(self.router.lines[failing.model], request)

    patch.setattr(Migrations, "stop", all_again)


def decode_lines_have_the_turn_of_main_lines(patch):
    choose = Router._choose

    def one_turn(self, request, line, free):
        main = self.lines[request.model]
        line.turn = main.turn
        found = choose(self, request, line, free)
        main.turn = line.turn
        return found

    patch.setattr(Router, "_choose", one_turn)


FAULTS = {
    piped: [
        pipelines_form_after_ticks, copies_are_there_after_pipelines_form, members_keep_their_kv_at_the_switch,
        who_waited_goes_first_after_the_switch, a_switch_moves_who_waits_too, members_go_on_after_a_loss,
        all_pipelines_of_an_operation_break, broken_pipelines_form, members_send, members_count_as_up_only,
        members_are_as_fast_as_alone, prefixes_outlive_a_failure,
    ],
    ranked: [
        at_the_router_all_are_equal, who_is_thrown_out_stands_before_all, in_queues_all_are_equal,
        who_runs_is_in_order_of_admission, who_is_evicted_stands_behind_its_rank, nobody_goes_for_a_lower_rank,
    ],
    cached: [
        a_hit_is_no_use, the_first_block_is_used_first, the_last_blocks_are_kept, a_gap_does_not_matter,
        nothing_of_a_prompt_is_computed, prefixes_outlive_a_failure, prompts_are_kept_from_admission_on,
    ],
    migrated: [
        blocks_are_free_when_sending_begins, who_is_sent_counts_where_it_was_prefilled,
        decode_lines_are_in_order_of_prompts, who_comes_takes_no_slot, who_was_evicted_does_not_hold_others_up,
        who_lands_waits_for_blocks_of_others, every_transfer_gets_an_equal_part_of_its_source, latency_comes_on_top,
        transfers_land_after_steps_start, transfers_land_before_failures, a_transfer_ends_a_moment_later,
        what_a_failed_target_would_have_got_is_computed_again, decode_lines_have_the_turn_of_main_lines,
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("scenarios", "plant"),
    [(scenarios, plant) for scenarios, plants in FAULTS.items() for plant in plants],
    ids=lambda part: part.__name__,
)
def test_a_planted_fault_is_found(scenarios, plant, monkeypatch):
    plant(monkeypatch)
    assert any(differences(run_compiled(lowered), simulate(lowered)) for lowered in scenarios())
