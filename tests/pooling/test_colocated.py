"""GPUs that do both phases, by hand: weights load in 1 s, prompts of 100 tokens take 0.1 s, steps 10 ms."""

import numpy as np
import pytest
from pooling_cases import case

from workbench.pooling.policy.names import RUNS
from workbench.pooling.simulated import simulate_colocated

ALONE = {"node": np.zeros(1, np.int64), "decodes": np.zeros(1, np.int64), "system": RUNS}


def test_a_prompt_first_ends_the_turn_at_the_next_step():
    """A decodes from 1.1 s; B comes at 1.205 and is taken up at 1.21: load 1 s, prompt 0.1 s. Then a round: A is not
    resident any more, loads again, and has made 12 tokens of 100."""
    out = simulate_colocated(case([(0.0, 0, 100, 100), (1.205, 1, 100, 2)], **ALONE), "prompts")
    assert out.first_token_s.tolist() == pytest.approx([1.1, 2.31])
    times = out.token_s[:100]
    assert times[11] == pytest.approx(1.21)
    assert times[12] == pytest.approx(2.31 + 1.0 + 0.01)


def test_decoding_first_lets_a_prompt_wait_until_nobody_decodes():
    out = simulate_colocated(case([(0.0, 0, 100, 100), (1.205, 1, 100, 2)], **ALONE), "decoding")
    assert out.finish_s[0] == pytest.approx(1.1 + 0.99)
    assert out.first_token_s[1] == pytest.approx(1.1 + 0.99 + 1.1)


def test_requests_go_to_the_gpu_with_the_fewest():
    two = {"node": np.zeros(2, np.int64), "decodes": np.zeros(2, np.int64), "system": RUNS}
    out = simulate_colocated(case([(0.0, 0, 100, 1), (0.0, 0, 100, 1), (0.0, 0, 100, 1)], **two), "prompts")
    assert out.prefill_instance.tolist() == [0, 1, 0]
    assert out.first_token_s.tolist() == pytest.approx([1.1, 1.1, 1.2])
