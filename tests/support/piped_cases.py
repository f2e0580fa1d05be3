"""Small clusters whose rows serve in pipelines, drawn number by number, so that what fails shrinks to a small case."""

import numpy as np
from hypothesis import strategies as st
from scaling_cases import small_scaled_scenarios

from workbench.serving.model.lowered import Lowered
from workbench.serving.policy import SOURCES


@st.composite
def small_piped_scenarios(draw) -> Lowered:
    """One of `small_scaled_scenarios` in which all weights are multicast, to rows that serve in pipelines meanwhile."""
    base = draw(small_scaled_scenarios())
    given, rows = base.scaling, len(base.instances.model)
    shape = given.multicast_s.shape

    def each(strategy, size):
        return np.array(draw(st.lists(strategy, min_size=size, max_size=size)))

    entries = int(np.prod(shape))
    share = each(st.sampled_from([0.0, 0.25, 0.5, 1.0]), entries).reshape(shape)
    never = each(st.booleans(), entries).reshape(shape)
    rank = each(st.integers(0, 1), len(base.requests.rank))
    scaling = given._replace(
        source=np.full_like(given.source, SOURCES["multicast"]),
        piped_s=np.where(never & (share > 0), np.inf, given.multicast_s * share),
        piped_with=each(st.integers(0, 1), entries).reshape(shape),
        piped_form=base.instances.form * each(st.sampled_from([0.5, 1.0, 3.0]), rows)[:, None, None],
        switch_whole=each(st.integers(0, 1), len(given.kind)),
    )
    return base._replace(scaling=scaling, requests=base.requests._replace(rank=rank))
