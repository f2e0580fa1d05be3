"""How long each batch decodes in a round (Algorithm 2): quotas that let all batches fall behind alike, or none."""

from workbench.jit import lean_kernel


@lean_kernel
def pace_of(step_s, tbt_s, switches_s, most_s, floor):
    """The reciprocal of the attainment that a round can keep: each batch makes a token every `pace` x `tbt_s`.

    max(c / (min n Q) + Σ 1/n, floor) with n = tbt_s / step_s.

    Parameters:
        step_s: float64[k], step time of each batch.
        tbt_s: the time between tokens that is promised.
        switches_s: c, the switches of a round together.
        most_s: Q, the longest quota.
        floor: the least pace; a smaller one would make turns, and so waits of new batches, very long.

    Source: Aegaeon (SOSP'25) §4.3, Eq 3, where it is called α.
    """
    longest_s, steps_in_token = 0.0, 0.0
    for k in range(step_s.size):
        longest_s = max(longest_s, step_s[k])
        steps_in_token += step_s[k] / tbt_s
    return max(switches_s * longest_s / (tbt_s * most_s) + steps_in_token, floor)


@lean_kernel
def fill_quotas(step_s, tbt_s, switches_s, most_s, floor, quota_s):
    """Seconds that each batch decodes in a round, and the pace.

    Off the floor the slowest batch gets `most_s` and the others their share of it, most_s min(n) / n; on the floor all
    get c / (n (floor - Σ 1/n)). That is Eq 2, c / (n (α - Σ 1/n)), without its products of many n.

    Parameters:
        step_s, tbt_s, switches_s, most_s, floor: as for `pace_of`.
        quota_s: float64[k], to be filled.
    """
    pace = pace_of(step_s, tbt_s, switches_s, most_s, floor)
    longest_s, steps_in_token = 0.0, 0.0
    for k in range(step_s.size):
        longest_s = max(longest_s, step_s[k])
        steps_in_token += step_s[k] / tbt_s
    free = switches_s * longest_s / (tbt_s * most_s) + steps_in_token >= floor
    for k in range(step_s.size):
        if free:
            quota_s[k] = most_s * (step_s[k] / longest_s)
        else:
            quota_s[k] = switches_s * step_s[k] / (tbt_s * (floor - steps_in_token))
    return pace
