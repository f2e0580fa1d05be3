"""Erlang's two formulas by the recursion that neither overflows nor cancels."""

from fractions import Fraction

from workbench.jit import kernel


@kernel
def erlang_b(offered_load, servers):
    """Share of customers lost by `servers` servers without a queue, offered load a = λ/μ.

    B(0) = 1, B(k) = a B(k-1) / (k + a B(k-1)): positive terms only, so each step adds one rounding error and c = 10,000
    keeps 12 digits.
    """
    blocked = 1.0
    for server in range(1, servers + 1):
        blocked = offered_load * blocked / (server + offered_load * blocked)
    return blocked


@kernel
def erlang_c(offered_load, servers):
    """Share of customers that wait when they may queue: B / (1 - ρ(1 - B)) with ρ = a/c below 1."""
    blocked = erlang_b(offered_load, servers)
    load = offered_load / servers
    return blocked / ((servers - offered_load) / servers + load * blocked)


def erlang_b_slow(offered_load: Fraction, servers: int) -> Fraction:
    """The definition in exact fractions: (a^c/c!) over the sum of a^k/k! for k = 0 to c."""
    terms = [Fraction(1)]
    for k in range(1, servers + 1):
        terms.append(terms[-1] * offered_load / k)
    return terms[-1] / sum(terms)
