"""A whole run in SimPy: arrays in, arrays out, as the compiled loop takes and gives them."""

import numpy as np

from workbench.pooling.model.checking import checked
from workbench.pooling.model.lowered import (
    HOST_COLUMNS,
    ROUND_COLUMNS,
    SWITCH_COLUMNS,
    TURN_COLUMNS,
    Lowered,
    Outcome,
)
from workbench.pooling.policy.names import TURNS
from workbench.pooling.simulated.wholes import Cluster
from workbench.pooling.simulated.world import World


def simulate(lowered: Lowered) -> Outcome:
    """What becomes of the requests of a run; the outcome of `workbench.pooling.model.run_compiled`, bit for bit.

    Raises:
        InputError: a run that makes no sense, or that admits by estimates.
    """
    lowered = checked(lowered)
    world = World(lowered) if lowered.rules.system == TURNS else Cluster(lowered)
    world.run()
    people, nan = world.requests, float("nan")
    made = np.array([len(one.token_s) for one in people], np.int64)
    return Outcome(
        status=np.array([one.status for one in people], np.int8),
        first_token_s=np.array([one.token_s[0] if one.token_s else nan for one in people], float),
        finish_s=np.array([one.finish_s for one in people], float),
        wait_s=np.array([one.wait_s for one in people], float),
        made=made,
        prefill_instance=np.array([one.prefill_gpu for one in people], np.int64),
        decode_instance=np.array([one.decode_gpu for one in people], np.int64),
        prefill_s=np.array([one.prefill_s for one in people], float),
        decode_s=np.array([one.decode_s for one in people], float),
        moved_s=np.array([one.moved_s for one in people], float),
        waited_s=np.array([one.waited_s for one in people], float),
        token_s=np.array([time_s for one in people for time_s in one.token_s], float),
        token_at=np.concatenate([[0], np.cumsum(made)]),
        busy_s=np.array([gpu.busy_s for gpu in world.gpus]),
        switching_s=np.array([gpu.switching_s for gpu in world.gpus]),
        switches=_table(world.switches, SWITCH_COLUMNS),
        turns=_table(world.turns, TURN_COLUMNS),
        rounds=_table(world.rounds, ROUND_COLUMNS),
        host=_table(world.host, HOST_COLUMNS),
    )


def _table(rows: list[tuple], columns: tuple[str, ...]) -> np.ndarray:
    return np.array(rows, float).reshape(len(rows), len(columns))
