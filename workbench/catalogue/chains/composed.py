"""Tables of servers put together to chains, with GCA stopped after any round: what the chain builders draw."""

import polars as pl

from workbench.chains import Chain, Composition

LINKS = {"chain": pl.String, "server": pl.String, "first_block": pl.Int64, "last_block": pl.Int64}
CHAINS = {
    "algorithm": pl.String, "servers": pl.String, "hops": pl.Int64, "capacity": pl.Int64, "service_s": pl.Float64,
}  # fmt: skip


def servers_table(made: Composition, rounds: int) -> pl.DataFrame:
    """One row a server: its blocks (counted from 1), its disjoint chain, slots, and slots left after some rounds."""
    left = made.slots.copy()
    for chain in made.chains[:rounds]:
        for j, blocks in zip(chain.servers, chain.blocks, strict=True):
            left[j] -= blocks * chain.capacity
    return pl.DataFrame(
        {
            "server": [f"j{j + 1}" for j in range(made.fleet.servers)],
            "first_block": (made.placement.first + 1).tolist(),
            "blocks": made.placement.blocks.tolist(),
            "chain": made.placement.group.tolist(),
            "slots": made.slots.tolist(),
            "slots_left": left.tolist(),
        }
    )


def chains_table(made: Composition, rounds: int) -> pl.DataFrame:
    """One row a chain: the disjoint ones that GBP-CR had in mind, then GCA's of the first rounds."""
    groups = [_group(made, number) for number in range(made.placement.groups)]
    rows = groups + [
        ("GCA", names(chain.servers), len(chain.servers), chain.capacity, chain.service_s)
        for chain in made.chains[:rounds]
    ]
    table = pl.DataFrame(rows, schema=CHAINS, orient="row")
    return table.with_columns(rate_per_s=pl.col("capacity") / pl.col("service_s"))


def links_table(chains: tuple[Chain, ...]) -> pl.DataFrame:
    """Which blocks a job of each chain has processed on each server, in the order in which it meets them."""
    rows = []
    for chain in chains:
        first = 1
        for j, blocks in zip(chain.servers, chain.blocks, strict=True):
            rows.append((names(chain.servers), f"j{j + 1}", first, first + blocks - 1))
            first += blocks
    return pl.DataFrame(rows, schema=LINKS, orient="row")


def names(servers: tuple[int, ...]) -> str:
    """Servers of a chain as text, counted from 1."""
    return "-".join(f"j{server + 1}" for server in servers)


def _group(made: Composition, number: int) -> tuple:
    members = tuple(j for j in range(made.fleet.servers) if made.placement.group[j] == number)
    members = tuple(sorted(members, key=lambda j: int(made.placement.first[j])))
    seconds = sum(
        float(made.fleet.communication_s[j] + made.fleet.compute_s[j] * made.placement.blocks[j]) for j in members
    )
    return "GBP-CR", names(members), len(members), made.reserved, seconds
