"""What a real job is judged on: outputs, slopes that describe the overlap, and which order is faster."""

import itertools

import polars as pl

from workbench.catalogue.judging import Draft, against_measurements
from workbench.results import Verdict

LIMIT, APART = 0.10, 0.05
"""Largest median error of fitted slopes, and how far predictions must lie apart to foretell which order is faster."""
_QUIET = ". Assumed here: nothing else runs on the machine while it is measured"


def judge(draft: Draft) -> list[Verdict]:
    """The verdicts of a real run, none without one."""
    if (slopes := draft.tables.get("slopes")) is None:
        return []
    found = [_same_outputs(draft)]
    for row in slopes.iter_rows(named=True):
        good = row["error"] <= LIMIT
        why = f"a = {row['memory_slope']:.2f}, b = {row['compute_slope']:.2f}; of the shorter parts' time "
        why += f"{row['hidden']:.0%} is hidden" + ("" if good else _QUIET)
        found.append(against_measurements(
            draft, f"{row['work']}: median error of max(T_c + a T_m, T_m + b T_c) on readings not fitted",
            "measured times", row["error"], LIMIT, "reproduced" if good else "differs", why,
        ))  # fmt: skip
    return [*found, _same_ranks(draft)]


def _same_outputs(draft: Draft) -> Verdict:
    checked = draft.tables["identity"]
    faults = [fault for fault in checked["fault"] if fault]
    exact = int((checked["difference"] == 0).sum())
    why = f"{checked['tokens'].sum():,} tokens, at least {checked['distinct'].min()} different ones each; logits "
    why += f"differ by {checked['difference'].max():.1g} of the largest at most, not at all in {exact} runs (invariant "
    why += f"arithmetic); smallest distance of the best two logits {checked['gap'].min():.2g}"
    return Verdict(
        claim="outputs under shared prefixes, in every order, are those of each request alone",
        published="identical",
        ours="not identical" if faults else "identical",
        strength="exact",
        verdict="differs" if faults else "reproduced",
        reason=f"{faults[0]}. Assumed here: the machine's library keeps the bits of rows" if faults else why,
        mode=draft.mode,
        seeds=draft.seeds,
    )


def _same_ranks(draft: Draft) -> Verdict:
    """Every pair of orders whose predictions lie apart, in both engines."""
    real = draft.tables["predicted"]["backend"][0]
    measured, expected = (
        {
            (row["engine"], row["order"]): row["seconds"]
            for row in draft.tables[name].filter(pl.col("backend") == real).iter_rows(named=True)
        }
        for name in ("orders", "predicted")
    )
    told, wrong = 0, []
    for one, other in itertools.permutations(expected, 2):
        if one[0] == other[0] and expected[one] * (1 + APART) < expected[other]:
            told += 1
            if measured[one] >= measured[other]:
                wrong.append(f"{one[1]} before {other[1]}, {one[0]}")
    off = max(abs(expected[key] / measured[key] - 1) for key in expected)
    why = f"{told - len(wrong)} of {told} pairs; predictions miss the measured times by at most {off:.0%}"
    if wrong:
        why += f"; not so: {'; '.join(wrong)}{_QUIET}"
    return Verdict(
        claim=f"of two orders whose predicted times lie more than {APART:.0%} apart the predicted one is faster",
        published="predicted order",
        ours="another order" if wrong else "predicted order",
        strength="ordering",
        verdict="differs" if wrong else "reproduced" if told else "undecided",
        reason=why,
        mode=draft.mode,
        seeds=draft.seeds,
    )
