"""Whether a pool can promise one more request what it promises."""

from workbench.jit import lean_kernel


@lean_kernel
def round_s(batches, step_s, switch_s, tbt_s, most_s, floor):
    """Length of a round of equal batches, and its pace: c α / (α - S), with S = k t / d and c = k s.

    Parameters:
        batches: k. step_s: t, of each. switch_s: s, of each. tbt_s: d.
        most_s, floor: longest quota, least pace.

    Source: Aegaeon (SOSP'25) Eq 2 and 3; the length follows from them.
    """
    steps = batches * step_s / tbt_s
    pace = max(batches * switch_s * step_s / (tbt_s * most_s) + steps, floor)
    if pace > floor or pace == steps:
        return batches * (switch_s + most_s), pace
    return batches * switch_s * pace / (pace - steps), pace


@lean_kernel
def decoding_fits(batches, step_s, switch_s, tbt_s, most_s, floor, slack_s):
    """Whether equal batches keep pace with their readers, and a new one's first turn comes before its slack is used.

    A new batch has earned nothing and may wait a whole round less its own quota.

    Parameters:
        as for `round_s`. slack_s: how late the second token of the new request may come, from its first.
    """
    length_s, pace = round_s(batches, step_s, switch_s, tbt_s, most_s, floor)
    return pace <= 1.0 and length_s * (batches - 1) / batches + switch_s + 2.0 * step_s <= slack_s
