"""Run a pool in compiled code."""

import numpy as np

from workbench.pooling.kernels import layout
from workbench.pooling.kernels.turns import take_turns
from workbench.pooling.kernels.wholes import serve_wholes
from workbench.pooling.model.checking import checked
from workbench.pooling.model.lowered import Lowered, Outcome
from workbench.pooling.policy.names import TURNS


def run_compiled(lowered: Lowered) -> Outcome:
    """What becomes of the requests of a run.

    Raises:
        InputError: a run that makes no sense, with the array and row at fault.
    """
    requests, models, pool, rules = checked(lowered)
    engine = take_turns if rules.system == TURNS else serve_wholes
    state = engine(requests, models, pool, rules)
    made = state.requests[:, layout.MADE].copy()
    whole = np.cumsum(requests.output) - requests.output
    at = np.concatenate([[0], np.cumsum(made)])
    taken = np.arange(at[-1]) - np.repeat(at[:-1], made) + np.repeat(whole, made)
    moments, reals = state.moments, state.reals
    return Outcome(
        status=state.requests[:, layout.STATUS].astype(np.int8),
        first_token_s=moments[:, layout.FIRST_S].copy(),
        finish_s=moments[:, layout.FINISH_S].copy(),
        wait_s=moments[:, layout.WAIT_S].copy(),
        made=made,
        prefill_instance=state.requests[:, layout.PREFILLS].copy(),
        decode_instance=state.requests[:, layout.DECODES].copy(),
        prefill_s=moments[:, layout.PREFILL_S].copy(),
        decode_s=moments[:, layout.DECODE_S].copy(),
        moved_s=moments[:, layout.MOVED_S].copy(),
        waited_s=moments[:, layout.WAITED_S].copy(),
        token_s=state.token_s[taken],
        token_at=at,
        busy_s=reals[:, layout.BUSY_S].copy(),
        switching_s=reals[:, layout.SWITCHING_S].copy(),
        switches=state.switches.copy(),
        turns=state.turns.copy(),
        rounds=state.rounds.copy(),
        host=state.host.copy(),
    )
