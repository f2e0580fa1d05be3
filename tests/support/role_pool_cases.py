"""Clusters that change their size and whose instances have roles, for tests."""

import numpy as np
from scaling_cases import scaled_scenario

from workbench.serving.model.lowered import COLOCATED, DECODE, PREFILL, Lowered, Network
from workbench.serving.model.scaled import EMPTY, UP
from workbench.serving.policy.scalers import ROLES

OF_GROUPS = (
    "kind", "par", "min_rows", "max_rows", "up_ticks", "down_ticks", "down_step", "source", "control_s", "fixed_s",
    "multicast_s", "keep_s", "piped_s", "piped_with", "switch_whole", "memory_first", "local_s", "local_piped_s",
    "local_with", "hosts_send",
)  # fmt: skip
OF_ROWS = ("place", "host", "dram_s", "piped_form")


def role_pool(rng: np.random.Generator, most_requests=40) -> Lowered:
    """One of `scaling_cases.scaled_scenario` in which a place holds a prefill or a decode row of most models."""
    base = scaled_scenario(rng, most_requests)
    grid, given = bool((4 * base.requests.arrival_s % 1 == 0).all()), base.scaling
    models = len(given.bytes)
    split = (rng.random(models) < 0.8) & np.isin(np.arange(models), base.instances.model)
    split[base.instances.model[0]] = True
    pairs = [
        (row, role)
        for row, m in enumerate(base.instances.model.tolist())
        for role in ((PREFILL, DECODE) if split[m] else (COLOCATED,))
    ]
    row, role = (np.array(column) for column in zip(*pairs, strict=True))
    start_state = given.start_state[row]
    for first in np.flatnonzero((role == PREFILL) & (start_state == UP)):
        start_state[first + rng.integers(2)] = EMPTY
    other = rng.permutation(models)
    fields = {name: np.concatenate([getattr(given, name), getattr(given, name)[other]]) for name in OF_GROUPS}
    of_roles = np.tile(split, 2) & (rng.random(2 * models) < 0.4)
    fields["kind"] = np.where(of_roles, ROLES, fields["kind"])
    fields["par"] = np.where(of_roles[:, None], rng.choice([0.5, 1, 4, 20], (2 * models, 8)), fields["par"])
    rows = {name: getattr(given, name)[row] for name in OF_ROWS}
    n, rates = row.size, np.array([2.0, 8.0, 16.0, np.inf]) if grid else rng.lognormal(2, 1.5, 4)
    network = Network(
        rng.choice(rates, n),
        rng.choice(rates, n),
        float(rng.choice([0.0, 0.25])),
        rng.choice([0.0, 1.0, 4.0] if grid else [0.3, 1.7], models),
    )
    instances = type(base.instances)(*(column[row] for column in base.instances))._replace(role=role)
    scaling = given._replace(start_state=start_state, **fields, **rows)
    return base._replace(instances=instances, scaling=scaling, network=network)
