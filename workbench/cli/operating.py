"""simulate, compare, capacity, plan: systems on clusters from the command line."""

import argparse
from typing import Any

from workbench.cli import happening
from workbench.cli.places import require_place, require_writable
from workbench.errors import UserError
from workbench.records import given_path


def add(commands: argparse._SubParsersAction) -> None:
    """Enter the commands into the parser."""
    simulate = commands.add_parser("simulate", help="let a system serve a trace on a cluster")
    simulate.add_argument("system", metavar="SYSTEM", help="of wb.systems(): fixed, fixed@half, dedicated, ...")
    _common(simulate, promised=False)
    happening.add(simulate)
    simulate.add_argument(
        "--backend", default="compiled", metavar="NAME", help="compiled (default) or simpy; both give the same times"
    )
    simulate.add_argument("--until", type=float, metavar="SECONDS", help="stop the clock there")
    simulate.add_argument("--out", metavar="FOLDER", help="save the run there, as Parquet and JSON")
    simulate.add_argument("--chrome-trace", metavar="FILE", help="write it for chrome://tracing or Perfetto")
    simulate.set_defaults(run=_simulate)

    compare = commands.add_parser("compare", help="two saved runs of one trace, request by request")
    for name in ("a", "b"):
        compare.add_argument(name, metavar=f"FOLDER_{name.upper()}", help="what `workbench simulate --out` wrote")
    _promised(compare)
    compare.set_defaults(run=_compare)

    capacity = commands.add_parser("capacity", help="the largest load at which a system keeps a promise")
    capacity.add_argument("system", metavar="SYSTEM", help="of wb.systems()")
    _common(capacity, promised=True)
    happening.add(capacity)
    capacity.set_defaults(run=_capacity)

    plan = commands.add_parser("plan", help="the smallest deployment that keeps a promise, and what binds")
    plan.add_argument("--system", action="append", metavar="SYSTEM", help="which to plan (default fixed)")
    _common(plan, promised=True)
    happening.add(plan)
    plan.set_defaults(run=_plan)


def _common(parser: argparse.ArgumentParser, *, promised: bool) -> None:
    parser.add_argument("--trace", required=True, metavar="NAME|FILE", help="of `workbench data list`, or a file")
    parser.add_argument("--cluster", required=True, metavar="NAME|FILE", help="a cluster of the profiles, or a file")
    parser.add_argument(
        "--hosts", type=int, metavar="N", help="so many hosts of that cluster instead of all (uniform clusters)"
    )
    parser.add_argument(
        "--model", action="append", required=True, metavar="[NAME=]MODEL",
        help="the model; NAME=MODEL for each name in a trace that has several",
    )  # fmt: skip
    parser.add_argument("--tp", type=int, metavar="N", help="accelerators of an instance (plan tries all if left out)")
    parser.add_argument("--dtype", metavar="FORMAT", help="number format of the weights, by default the model's own")
    parser.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="DECISION=NAME",
        help="such as dispatch=random or autoscaler=queue:waiting=4",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="CHOICE=VALUE",
        help="change a choice of the system, such as tick_s=0.5 or variant=artifact",
    )  # fmt: skip
    parser.add_argument(
        "--instances", metavar="LEAST:MOST",
        help="bounds of each model's instances where the system scales; of each kind where prompts and decoding are "
        "apart",
    )  # fmt: skip
    parser.add_argument("--step", default="roofline", metavar="SOURCE", help="of step times (default roofline)")
    parser.add_argument("--kv-tokens", type=int, metavar="N", help="tokens of KV that fit an instance, where known")
    _promised(parser)
    if promised:
        parser.add_argument(
            "--attainment", type=float, default=0.9, metavar="SHARE", help="that must keep it (default 0.9)"
        )
    parser.add_argument("--seed", type=int, default=0, help="of what is random (default 0)")


def _promised(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--slo", metavar="PRESET", help="the promise of a paper, such as aegaeon")
    parser.add_argument("--ttft", type=float, metavar="SECONDS", help="promised time to the first token")
    parser.add_argument("--tbt", type=float, metavar="SECONDS", help="promised time between tokens")
    parser.add_argument(
        "--definition", metavar="NAME", help="how keeping it is counted: request, token, qos-artifact or qos-reset"
    )


def _asked(options: argparse.Namespace) -> dict[str, Any]:
    from workbench import profiles

    cluster = profiles.cluster(options.cluster)
    if options.hosts is not None:
        cluster = cluster.with_hosts(options.hosts)
    named = dict(_pair(text, "--model") for text in options.model if "=" in text)
    if named and len(named) < len(options.model):
        raise UserError("--model is given with and without NAME=; give a name to all of them, or one model to all.")
    if len(options.model) > 1 and not named:
        raise UserError("--model is given several times; write NAME=MODEL for each name in the trace.")
    return {
        "trace": options.trace,
        "cluster": cluster,
        "models": named or options.model[0],
        "policies": dict(_pair(text, "--policy") for text in options.policy),
        "step": options.step,
        "kv_tokens": options.kv_tokens,
        "slo": _promise(options),
        "seed": options.seed,
    }


def _deployment(options: argparse.Namespace, tp: int | None = None, *, apart: bool = False):
    """The deployment; one pair of bounds, for instances that do both phases or for each of two kinds that do one."""
    from workbench import profiles

    bounds = None
    if options.instances is not None:
        least, colon, most = options.instances.partition(":")
        if not (colon and least.strip().isdecimal() and most.strip().isdecimal()):
            raise UserError(f"--instances takes LEAST:MOST, as in 1:8, got {options.instances!r}.")
        bounds = (int(least), int(most))
    tp = tp if tp is not None else 1 if options.tp is None else options.tp
    decode = bounds if apart else None
    return profiles.deployment(tp=tp, dtype=options.dtype, prefill=bounds, decode=decode, colocated=not apart)


def _keeps_apart(given: Any) -> bool:
    """Whether instances of a system, or of the one of a name, compute prompts or decode only."""
    from workbench import operating

    found = operating.system(given)
    return isinstance(found, operating.System) and found.roles == "apart"


def _system(options: argparse.Namespace, name: str):
    """The system of a name with the choices that were set; the name itself where none was."""
    from workbench import operating

    pairs = (_pair(text, "--set") for text in options.set)
    changes = {key: None if value == "none" and key in MAY_BE_NONE else value for key, value in pairs}
    return operating.system(name, **changes) if changes else name


MAY_BE_NONE = ("limit", "batch_tokens", "cache_bytes", "chains", "promise_s")
"""Choices of a system that may be none."""


def _promise(options: argparse.Namespace):
    from workbench import profiles

    given = (options.slo, options.ttft, options.tbt, options.definition)
    if all(value is None for value in given):
        if hasattr(options, "attainment"):
            raise UserError("A promise is needed: give --slo PRESET, or --ttft and --tbt in seconds.")
        return None
    return profiles.slo(options.slo, ttft_s=options.ttft, tbt_s=options.tbt, definition=options.definition)


def _happening(options: argparse.Namespace, system: Any, asked: dict[str, Any], deployment: Any) -> dict[str, list]:
    """What happens during a run, as `wb.simulate` takes it."""
    from workbench import operating
    from workbench.operating.simulating import resolved

    def places() -> int:
        if not isinstance(operating.system(system), operating.System):
            return asked["cluster"].accelerators // deployment.tp  # a pool of models, to which nothing happens
        given = {name: value for name, value in asked.items() if name != "seed"}
        return resolved(system, **given, deployment=deployment).scenario.places

    return happening.happening(options, asked["cluster"], deployment.tp, places)


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise UserError(f"{option} takes NAME=VALUE, got {text!r}.")
    return name.strip(), value.strip()


def _simulate(options: argparse.Namespace) -> None:
    import math

    import polars as pl

    from workbench import operating
    from workbench.cli.tables import progress, show

    if options.out:
        folder = given_path(options.out, "path")
        if folder.exists() and not operating.is_saved_run(folder):
            raise UserError(f"{folder} exists and is not a saved run; give another --out.")
        require_writable(folder.parent, "give another --out")
    if options.chrome_trace:
        require_place(options.chrome_trace, "give another --chrome-trace")
    until_s = math.inf if options.until is None else options.until
    system = _system(options, options.system)
    deployment = _deployment(options, apart=_keeps_apart(system))
    with progress() as tell:
        tell(f"{options.system} serves {options.trace}")
        asked = _asked(options)
        asked |= _happening(options, system, asked, deployment)
        with happening.named(options):
            run = operating.simulate(system, **asked, deployment=deployment, backend=options.backend, until_s=until_s)
    print(run.sentence + "\n")
    for note in run.notes:
        print(note + "\n")
    show(pl.DataFrame(list(run.metrics().items()), schema=["metric", "value"], orient="row"), "Metrics")
    if options.out:
        print(f"Saved in {run.save(options.out)}")
    if options.chrome_trace:
        print(f"Chrome trace: {run.chrome_trace(options.chrome_trace)}")


def _compare(options: argparse.Namespace) -> None:
    from workbench import operating
    from workbench.cli.tables import show

    runs = []
    for folder in (options.a, options.b):
        if not operating.is_saved_run(folder):
            raise UserError(f"{folder} holds no saved run; give a folder that `workbench simulate --out` wrote.")
        runs.append(operating.load_run(folder))
    found = operating.compare(*runs, slo=_promise(options))
    print(found.sentence + "\n")
    show(found.table, "b less a, with intervals of 95 %")


def _capacity(options: argparse.Namespace) -> None:
    from workbench import operating
    from workbench.cli.tables import progress, show

    system = _system(options, options.system)
    deployment = _deployment(options, apart=_keeps_apart(system))
    asked = _asked(options)
    asked |= _happening(options, system, asked, deployment)
    with progress() as tell, happening.named(options):
        found = operating.capacity(system, **asked, deployment=deployment, attainment=options.attainment, progress=tell)
    print(found.sentence + "\n")
    show(found.tried.drop("run"), "Loads that were run")


def _plan(options: argparse.Namespace) -> None:
    from workbench import operating
    from workbench.cli.tables import progress, show
    from workbench.operating.size_search import TPS

    tps = TPS if options.tp is None else (options.tp,)
    systems = [_system(options, name) for name in options.system or ["fixed"]]
    apart = any(map(_keeps_apart, systems))
    asked = _asked(options)
    asked |= happening.of_any_size(options, asked["cluster"])
    with progress() as tell, happening.named(options):
        found = operating.plan(
            systems=systems, progress=tell, deployments=[_deployment(options, tp, apart=apart) for tp in tps],
            attainment=options.attainment, **asked,
        )  # fmt: skip
    print(found.sentence + "\n")
    show(found.table, "Smallest deployments")
    show(found.tried, "What was run")
