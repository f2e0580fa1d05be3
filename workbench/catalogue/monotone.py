"""Verdicts on curves that must only fall, or only rise."""

import itertools
from collections.abc import Sequence

from workbench.catalogue.judging import Draft
from workbench.results import Reading, Verdict

KEEPING = "nothing but the keep-alive changes from point to point"


def monotone(
    draft: Draft, claim: str, runs: Sequence[Sequence[float]], *, falling: bool = False, blame: str = KEEPING
) -> Verdict:
    """Whether the values of every run (a replication each) only rise, or fall; `blame` is what else may move them."""
    steps = [list(itertools.pairwise(run)) for run in runs]
    wrong = sum(a < b if falling else a > b for run in steps for a, b in run)
    reading: Reading = "differs" if wrong else "reproduced"
    reason = f"{sum(map(len, steps)) - wrong} of {sum(map(len, steps))} steps go the stated way"
    if not draft.comparable:
        reading, reason = "not comparable", draft.reason
    elif wrong:
        reason += f". Assumed here: {blame}"
    return Verdict(
        claim=claim,
        published="falls" if falling else "rises",
        ours=", ".join(f"{value:.4g}" for value in runs[0]),
        strength="ordering",
        verdict=reading,
        reason=reason,
        mode=draft.mode,
        seeds=draft.seeds,
        trace=draft.trace,
    )
