"""The answers are those of a calculation by hand, for many students; hints and slips are about the same question."""

import itertools
import math

import numpy as np
import pytest

import workbench as wb
from workbench.errors import UnknownName, UserError
from workbench.teaching.judging import cases_of
from workbench.teaching.task import FunctionTask, ValueTask, student_rng
from workbench.teaching.tasks import TASKS
from workbench.transfer.model import arrival_steps
from workbench.transfer.policy import sub_groups

STUDENTS = ["Ada", "Bo", "Chen", "Dina", "Eli", 7, "Fatma", "Guo"]


def mean_response(rates, arrivals, most=90):
    """Two servers of one slot, fastest free first: the chain of states (inside, who is busy), cut off far out."""
    fast, slow = rates
    # states: 0 empty, 1 fast busy, 2 slow busy, then n >= 2 inside, at place n + 1
    size = most + 2
    flow = np.zeros((size, size))

    def move(source, target, rate):
        flow[target, source] += rate
        flow[source, source] -= rate

    move(0, 1, arrivals)
    move(1, 0, fast)
    move(1, 3, arrivals)
    move(2, 0, slow)
    move(2, 3, arrivals)
    move(3, 1, slow)
    move(3, 2, fast)
    for place in range(3, size - 1):
        move(place, place + 1, arrivals)
        move(place + 1, place, fast + slow)
    flow[0] = 1
    weight = np.linalg.solve(flow, np.eye(size)[0])
    inside = np.array([0, 1, 1, *range(2, size - 1)])
    return float(weight @ inside) / arrivals


def break_even(fast_per_min, load_percent):
    load, low, high = load_percent / 100, 1e-3, 1.0
    for _ in range(22):
        middle = (low + high) / 2
        low, high = (middle, high) if mean_response((1.0, middle), load) > 1 / (1 - load) else (low, middle)
    return fast_per_min * low


def first_pipeline(copies, nodes, blocks):
    """Smallest step after which one destination of each sub-group can be picked so that they hold all blocks."""
    landed = np.rint(arrival_steps("k_way", nodes, blocks, sources=copies, order="contiguous"))
    groups = [members[1:] for members in sub_groups(nodes, copies)]
    for step in range(1, 200):
        for chosen in itertools.product(*groups):
            if (landed[list(chosen)].min(axis=0) <= step).all():
                return step
    return math.nan


def best_blocks(gigabytes, nodes, gbps, overhead_ms):
    hops = math.ceil(math.log2(nodes))
    wire_s = gigabytes * 8 / gbps
    return min(range(1, 3000), key=lambda m: (hops + m - 1) * (overhead_ms / 1e3 + wire_s / m))


KV_BYTES = {"llama-3-8b": 2 * 32 * 8 * 128 * 2, "llama-2-7b": 2 * 32 * 32 * 128 * 2}
WEIGHTS = {"llama-3-8b": 8.03e9, "llama-2-7b": 6.74e9}
SPEEDS = {"a100-80gb-sxm": (312e12, 2.039e12), "h100-80gb-sxm": (989e12, 3.35e12)}


def turn(name, gpu, prompt):
    """By search: the KV of p d + d²/2 tokens against the arithmetic of p + d, from data sheets."""
    flops_per_s, bytes_per_s = SPEEDS[gpu]
    token_s, read_s = 2 * WEIGHTS[name] / flops_per_s, KV_BYTES[name] / bytes_per_s
    return next(d for d in range(1, 20_000) if (prompt * d + d * d / 2) * read_s > (prompt + d) * token_s)


def pace(first_ms, second_ms, third_ms, tbt_ms, switch_s, quota_s):
    """Straight from a round: the slowest batch decodes for the longest turn, and all make as many tokens."""
    tokens = quota_s / (third_ms / 1e3)
    round_s = 3 * switch_s + tokens * (first_ms + second_ms + third_ms) / 1e3
    return round_s / (tokens * tbt_ms / 1e3)


def turns(gigabytes, targets, gbps, units, gap_s):
    """Second by second, almost: how much of both chains is sent, in turn and by halves."""
    alone_s, step_s = (units + targets - 1) * gigabytes * 8 / gbps / units, 1e-4
    left, now = alone_s, 0.0
    while left > 0:
        left -= step_s * (0.5 if now >= gap_s else 1.0)
        now += step_s
    return now - alone_s


def pays_off(price, years, rent, busy_w, idle_w, cents):
    """By bisection over the share of time at work."""
    hours, low, high = years * 365.25 * 24, 0.0, 1.0
    for _ in range(40):
        share = (low + high) / 2
        kwh = hours * (share * busy_w + (1 - share) * idle_w) / 1000
        low, high = (low, share) if price + kwh * cents / 100 < rent * hours * share else (share, high)
    return 100 * low


WEIGHT_BYTES = {"llama-3-8b": 8_030_261_248 * 2, "qwen2.5-72b": 72_706_203_648 * 2}
BY_HAND = {
    "blitzscale/stop-rate": lambda name, gpus, stop_ms: WEIGHT_BYTES[name] * 8 / gpus / stop_ms / 1e6,
    "blitzscale/chain-time": lambda gigabytes, targets, gbps, units: (
        (units + targets - 1) * gigabytes * 8 / gbps / units
    ),
    "aegaeon/active-models": lambda models, per_hour, seconds: models * (1 - math.exp(-per_hour * seconds / 3600)),
    "aegaeon/pace": pace,
    "lambdascale/first-pipeline": first_pipeline,
    "lambdascale/best-blocks": best_blocks,
    "chains/blocks-hosted": lambda memory_mb, block_mb, cache_mb, jobs, layers: min(
        layers, memory_mb // (block_mb + cache_mb * jobs)
    ),
    "chains/break-even": break_even,
    "blendserve/turning-point": turn,
    "blendserve/gain": lambda compute_s, memory_s, slow_percent: (
        (compute_s + memory_s)
        / max(compute_s + slow_percent * memory_s / 100, memory_s + slow_percent * compute_s / 100)
    ),
    "showdown/in-turn": turns,
    "showdown/break-even": pays_off,
}


def in_time(token_s, ttft_s, tbt_s):
    return sum(at <= ttft_s + k * tbt_s for k, at in enumerate(token_s)) / len(token_s)


def join(inside, slots, rates):
    free = [k for k in range(len(inside)) if inside[k] < slots[k]]
    return max(free, key=lambda k: rates[k], default=-1)


def sharing(prompts):
    prefixes = {tuple(prompt[:end]) for prompt in prompts for end in range(1, len(prompt) + 1)}
    return 1 - len(prefixes) / sum(map(len, prompts))


def to_buy(needs, short):
    minutes = [sum(model[minute] for model in needs) for minute in range(len(needs[0]))]
    return next(gpus for gpus in range(1000) if sum(need > gpus for need in minutes) <= short)


FUNCTIONS = {
    "blitzscale/live-gain": lambda layers, loaded: (
        2 if loaded == layers else layers / (layers - min(loaded, layers // 2))
    ),
    "aegaeon/in-time": in_time,
    "lambdascale/steps": lambda nodes, blocks: (nodes - 1).bit_length() + blocks - 1,
    "chains/join": join,
    "blendserve/sharing": sharing,
    "showdown/to-buy": to_buy,
}


def test_every_exercise_has_an_answer_by_hand():
    assert set(TASKS) == {*BY_HAND, *FUNCTIONS}
    papers = [id.split("/")[0] for id in TASKS]
    assert {paper: papers.count(paper) for paper in papers} == dict.fromkeys(
        ("blitzscale", "aegaeon", "lambdascale", "chains", "blendserve", "showdown"), 3
    )


@pytest.mark.parametrize("id", BY_HAND)
def test_a_value_worked_out_by_hand_is_right_for_every_student(id):
    for student in STUDENTS:
        numbers = TASKS[id].draw(student_rng(id, student))
        mark = wb.exercise(id, student=student).check(BY_HAND[id](**numbers))
        assert mark.right, (numbers, mark.says)


@pytest.mark.parametrize("id", FUNCTIONS)
def test_a_function_worked_out_by_hand_is_right_for_every_student(id):
    for student in STUDENTS:
        mark = wb.exercise(id, student=student).check(FUNCTIONS[id])
        assert mark.right, mark.says


@pytest.mark.parametrize("id", TASKS)
def test_what_is_wrong_is_not_right_and_a_slip_is_named(id):
    task = TASKS[id]
    for student in STUDENTS:
        exercise = wb.exercise(id, student=student)
        if isinstance(task, FunctionTask):
            for constant in (0, 1, 2.5, None, "8", [1]):
                assert not exercise.check(lambda *_, constant=constant: constant).right
            continue
        numbers = task.draw(student_rng(id, student))
        right = task.answer(**numbers)
        for factor in (0.5, 1.5, -1):
            assert not exercise.check(right * factor + (2 if task.slack else 0)).right
        named = {exercise.check(slip.value(**numbers)).says for slip in task.slips}
        assert named <= {f"Not yet: {slip.says}" for slip in task.slips} | {exercise.check(right).says}


@pytest.mark.parametrize("id", TASKS)
def test_numbers_differ_from_student_to_student_and_are_the_same_every_time(id):
    questions = {wb.exercise(id, student=student).question for student in STUDENTS}
    cases = {
        repr(cases_of(TASKS[id], student)) if isinstance(TASKS[id], FunctionTask) else student for student in STUDENTS
    }
    assert len(questions) > 1 or isinstance(TASKS[id], FunctionTask)
    assert len(cases) == len(STUDENTS)
    one, same = wb.exercise(id, student="Ada Lovelace"), wb.exercise(id, student="  ada   LOVELACE ")
    assert one.question == same.question
    assert "{" not in one.question


def test_the_functions_cases_are_not_all_trivial():
    for id in FUNCTIONS:
        answers = {round(float(TASKS[id].answer(*case)), 9) for case in cases_of(TASKS[id], "Ada")}
        assert len(answers) > 3, id


@pytest.mark.parametrize("id", TASKS)
def test_hints_come_one_by_one_and_say_no_number_of_the_student(id):
    exercise, task = wb.exercise(id, student="Ada"), TASKS[id]
    said = [exercise.hint() for _ in range(len(task.hints) + 1)]
    assert len(task.hints) >= 3
    assert said[0].startswith("Hint 1 of")
    assert said[-1] == said[-2]
    if isinstance(task, ValueTask):
        answer = f"{task.answer(**task.draw(student_rng(id, 'Ada'))):.4g}"
        assert not any(answer in hint.split() for hint in said)


def test_nothing_that_an_exercise_shows_holds_its_answer():
    exercise = wb.exercise("aegaeon/active-models", student="Ada")
    answer = 110 * (1 - math.exp(-144 * 26 / 3600))
    assert exercise.check(answer).right
    for shown in (repr(exercise), exercise._repr_html_(), exercise.check()._repr_mimebundle_(), exercise.check(3.0)):
        assert f"{answer:.3g}" not in str(shown)


@pytest.mark.parametrize("given", ["8", [3], True, float("nan"), float("inf"), lambda: 3, 10**400, [10**5000]])
def test_what_is_no_number_is_refused_in_a_sentence(given):
    mark = wb.exercise("aegaeon/active-models", student="Ada").check(given)
    assert not mark.right
    assert mark.says.startswith("Not yet:")


def test_a_function_that_fails_or_changes_its_arguments_is_judged_all_the_same():
    exercise = wb.exercise("aegaeon/in-time", student="Ada")

    def clears(token_s, ttft_s, tbt_s):
        found = in_time(token_s, ttft_s, tbt_s)
        token_s.clear()
        return np.float64(found)

    assert exercise.check(clears).right
    assert "ZeroDivisionError" in exercise.check(lambda *_: 1 / 0).says
    assert "TypeError" in exercise.check(lambda: 1).says
    assert "SystemExit" in exercise.check(lambda *_: exit(1)).says
    assert "thousands of digits" in exercise.check(lambda *_: 10**5000).says
    assert "a function in_time(token_s, ttft_s, tbt_s) is asked for" in exercise.check(0.75).says


def test_a_check_shows_markup_as_text_and_keeps_what_was_given():
    shown = wb.exercise("aegaeon/active-models", student="<b>Ada</b>").check(3.5)._repr_mimebundle_()
    assert shown["application/vnd.workbench.answer+json"] == {
        "exercise": "aegaeon/active-models", "student": "<b>Ada</b>", "given": 3.5,
    }  # fmt: skip
    endless = wb.exercise("aegaeon/active-models", student="Ada").check(float("nan"))._repr_mimebundle_()
    assert endless["application/vnd.workbench.answer+json"]["given"] is None  # JSON has no word for it
    assert '<p role="status"' in shown["text/html"]
    assert "<b>" not in shown["text/html"]
    assert "<code>nodes</code>" in wb.exercise("lambdascale/steps", student="Ada")._repr_html_()
    assert wb.exercise("lambdascale/steps", student="Ada").hint()._repr_html_().startswith("<p>Hint 1 of 3: How many")


def test_an_unknown_exercise_and_a_missing_name_are_refused():
    with pytest.raises(UnknownName, match="near names: lambdascale/steps"):
        wb.exercise("lambdascale/step", student="Ada")
    for nobody in ("", "  ", None, True, ["Ada"], 10**5000, "\ud800"):
        with pytest.raises(UserError, match="student is a name or a number"):
            wb.exercise("lambdascale/steps", student=nobody)
