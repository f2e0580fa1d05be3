"""All queueing cases of tests/oracles, every expected value by the function that claims to compute it."""

import json

import pytest
from oracle_cases import FOLDER, exactly, oracle

from workbench.queueing import (
    Deterministic,
    Exponential,
    Gamma,
    Hyperexponential,
    Lognormal,
    Uniform,
    active_models,
    batched_service,
    fastest_free,
    fastest_free_bounds,
    gg1_bounds,
    ggc,
    gimc,
    md1,
    mdc,
    mg1,
    mm1,
    mmc,
    mmck,
    polling,
    processor_sharing,
)

CLOSED = "queueing_closed_form.json"


@oracle(CLOSED, "M/M/1")
def test_mm1(case):
    found = mm1(case["params"]["lam"], case["params"]["mu"])
    exactly(
        {
            "rho": found.utilisation,
            "p0": found.empty_probability,
            "L": found.mean_in_system,
            "Lq": found.mean_waiting,
            "W": found.mean_response_s,
            "Wq": found.mean_wait_s,
            "p_n_ge_5": found.in_system_at_least(5),
            "W_p50": found.response_quantile_s(0.5),
            "W_p90": found.response_quantile_s(0.9),
            "W_p99": found.response_quantile_s(0.99),
            "Wq_p99": found.wait_quantile_s(0.99),
            "var_N": found.in_system_variance,
            "var_W": found.response_variance_s2,
        },
        case["expect"],
    )


@oracle(CLOSED, "M/M/c")
def test_mmc(case):
    given = case["params"]
    found = mmc(given["lam"], given["mu"], given["c"])
    ln_p0 = float(case["exact"].pop("p0").ln())
    assert found.ln_empty_probability == pytest.approx(ln_p0, rel=1e-12)
    case["expect"].pop("p0")
    exactly(
        {
            "a": found.offered_load,
            "rho": found.utilisation,
            "erlang_B": found.erlang_b,
            "erlang_C": found.wait_probability,
            "Wq": found.mean_wait_s,
            "Lq": found.mean_waiting,
            "W": found.mean_response_s,
            "L": found.mean_in_system,
            "Wq_given_wait": found.mean_wait_of_delayed_s,
            "P_Wq_gt_1_over_mu": found.wait_exceeds(1 / given["mu"]),
            "Wq_p90": found.wait_quantile_s(0.9),
            "Wq_p99": found.wait_quantile_s(0.99),
        },
        case["expect"],
    )


@oracle(CLOSED, "M/M/c/K")
def test_mmck(case):
    given = case["params"]
    found = mmck(given["lam"], given["mu"], given["c"], given["K"])
    exactly(
        {
            "p0": found.empty_probability,
            "p_block": found.blocking_probability,
            "L": found.mean_in_system,
            "Lq": found.mean_waiting,
            "throughput": found.arrival_rate_per_s,
            "W_accepted": found.mean_response_s,
            "Wq_accepted": found.mean_wait_s,
            "utilisation": found.utilisation,
        },
        case["expect"],
    )


SERVICES = {
    "deterministic": Deterministic(mean_s=1),
    "exponential": Exponential(mean_s=1),
    "erlang2": Gamma(mean_s=1, scv=1 / 2),
    "erlang4": Gamma(mean_s=1, scv=1 / 4),
    "uniform_0_2": Uniform(low_s=0, high_s=2),
    "lognormal_scv4": Lognormal(mean_s=1, scv=4),
    "lognormal_scv9": Lognormal(mean_s=1, scv=9),
    "h2_balanced_scv4": Hyperexponential(mean_s=1, scv=4),
    "h2_balanced_scv16": Hyperexponential(mean_s=1, scv=16),
}


@oracle(CLOSED, "M/G/1")
def test_mg1(case):
    found = mg1(case["params"]["lam"], SERVICES[case["params"]["service"]])
    assert found.service_scv == pytest.approx(case["expect"].pop("scv_service"), rel=1e-9, abs=1e-12)
    exactly(
        {
            "rho": found.utilisation,
            "Wq": found.mean_wait_s,
            "W": found.mean_response_s,
            "Lq": found.mean_waiting,
            "L": found.mean_in_system,
            "mean_residual": found.mean_residual_s,
            "Wq_second_moment": found.wait_second_moment_s2,
            "var_Wq": found.wait_variance_s2,
        },
        case["expect"],
    )


@oracle(CLOSED, "M/D/1")
def test_md1_distribution(case):
    found = md1(case["params"]["lam"], case["params"]["D"])
    values = {f"P_Wq_le_{t}": 1 - found.wait_exceeds(float(t)) for t in ("0", "0.5", "1", "2.5", "5")}
    values |= {f"Wq_q{part}": found.wait_quantile_s(float(part)) for part in ("0.9", "0.99")}
    exactly(values, case["expect"])


@oracle("queueing_mdc.json")
def test_mdc(case):
    given, expect = case["params"], case["expect"]
    found, same = mdc(given["lam"], given["D"], given["c"]), mmc(given["lam"], 1 / given["D"], given["c"])
    exactly(
        {
            "Wq": found.mean_wait_s,
            "Lq": found.mean_waiting,
            "W": found.mean_response_s,
            "Wq_MMc_same_mean": same.mean_wait_s,
            "ratio_to_MMc": found.mean_wait_s / same.mean_wait_s,
        },
        expect,
    )
    about = {}
    for method in ("allen_cunneen", "cosmetatos"):
        wait = ggc(given["lam"], 1, 1 / given["D"], 0, given["c"], method.replace("_", "-")).mean_wait_s
        about[f"{method}_Wq"] = wait
        error = case["approximation"].pop(f"{method}_rel_err")
        assert wait / found.mean_wait_s - 1 == pytest.approx(error, rel=1e-7, abs=1e-9)
    exactly(about, case["approximation"])


@oracle("queueing_gimc_gamma.json")
def test_gimc(case):
    given = case["params"]
    found = gimc(given["lam"], given["arrival_scv"], given["mu"], given["c"])
    exactly(
        {
            "sigma": found.sigma,
            "P_wait": found.wait_probability,
            "Wq": found.mean_wait_s,
            "W": found.mean_response_s,
            "Lq": found.mean_waiting,
        },
        case["expect"],
    )
    about = ggc(given["lam"], given["arrival_scv"], given["mu"], 1, given["c"], "allen-cunneen")
    assert about.mean_wait_s == pytest.approx(case["approximation"]["allen_cunneen_Wq"], rel=1e-9)


@oracle("queueing_gg_approx.json")
def test_two_moment_formulas(case):
    given = case["params"]
    moments = given["lam"], given["ca2"], given["mu"], given["cs2"]
    names = {
        "allen_cunneen_Wq": "allen-cunneen",
        "sakasegawa_Wq": "sakasegawa",
        "kingman_approx_Wq": "kingman",
        "kramer_langenbach_belz_Wq": "kraemer-langenbach-belz",
    }
    found = {key: ggc(*moments, given["c"], name).mean_wait_s for key, name in names.items() if key in case["expect"]}
    if given["c"] == 1:
        bounds = gg1_bounds(*moments)
        found |= {"kingman_upper_bound_Wq": bounds.upper_s, "marchal_lower_bound_Wq": bounds.lower_s}
    exactly(found, case["expect"])


@oracle("queueing_heterogeneous_ffs.json")
def test_unequal_servers(case):
    given = case["params"]
    found = fastest_free(given["lam"], given["mu"], given["capacity"])
    bounds = fastest_free_bounds(given["lam"], given["mu"], given["capacity"])
    values = {
        "rho": given["lam"] / sum(mu * c for mu, c in zip(given["mu"], given["capacity"], strict=True)),
        "p0": found.empty_probability,
        "P_wait": found.wait_probability,
        "L": found.mean_in_system,
        "Lq": found.mean_waiting,
        "W": found.mean_response_s,
        "Wq": found.mean_wait_s,
        "L_lower_bound": bounds.in_system_lower,
        "L_upper_bound": bounds.in_system_upper,
    }
    values |= {f"util_class{k}": busy for k, busy in enumerate(found.class_utilisation)}
    exactly(values, case["expect"])


@oracle("queueing_ps_batch.json", "M/G/1-PS (mean insensitive), variance for exponential sizes")
def test_processor_sharing(case):
    given = case["params"]
    found = processor_sharing(given["lam"], given["mean_size"] / given["capacity"])
    values = {
        "mean_sojourn": found.mean_response_s,
        "L": found.mean_in_system,
        "var_sojourn_exponential": found.response_variance_exponential_s2,
        "mean_slowdown": found.mean_slowdown,
    }
    values |= {f"mean_sojourn_given_size_{x}": found.mean_response_of_s(float(x)) for x in ("0.1", "1", "5")}
    exactly(values, case["expect"])


@oracle("queueing_ps_batch.json", "state-dependent birth-death (batched decode)")
def test_batched_service(case):
    given, expect = case["params"], case["expect"]
    found = batched_service(
        given["lam"], given["step_alpha"], given["step_beta"], given["mean_steps"], given["max_batch"], given["K"]
    )
    values = {
        "p0": found.empty_probability,
        "L": found.mean_in_system,
        "Lq": found.mean_waiting,
        "mean_running": found.mean_running,
    }
    if given["K"] is None:
        values |= {
            "rho_at_full_batch": given["lam"] / found.full_rate_per_s,
            "P_wait": found.wait_probability,
            "W": found.mean_response_s,
            "Wq": found.mean_wait_s,
        }
    else:
        values |= {
            "p_block": found.blocking_probability,
            "throughput": found.arrival_rate_per_s,
            "W_accepted": found.mean_response_s,
        }
    exactly(values, expect)


LAWS = {"exp": Exponential, "det": Deterministic}


@oracle("queueing_polling.json")
def test_polling(case):
    given = case["params"]
    service = LAWS[given["service"]](mean_s=given["mean_service"])
    walk = LAWS[given["switchover"]](mean_s=given["mean_switchover"])
    values = {}
    for discipline in ("exhaustive", "gated", "one-limited"):
        key = "Wq_" + discipline.replace("-", "_")
        if key not in case["expect"]:
            continue
        found = polling(given["N"], given["lam_per_queue"], service, walk, discipline)
        values |= {
            key: found.mean_wait_s,
            "rho": found.utilisation,
            "mean_cycle": found.mean_cycle_s,
            "Wq_no_switchover_MG1": found.mean_wait_without_walking_s,
        }
    exactly(values, case["expect"])


@oracle("active_models.json")
def test_active_models(case):
    given = case["params"]
    found = active_models(given["lam"], given["T"], given["models"])
    exactly(
        {
            "p_active": found.active_probability[0],
            "mean_active": found.mean_active,
            "var_active": found.variance_active,
            "pooling_ratio": found.pooling_ratio,
            "p99_active": found.quantile(0.99),
            "offered_load": found.offered_load,
        },
        case["expect"],
    )


@pytest.mark.parametrize(
    ("rates", "slots", "arrivals", "response", "wait_probability", "lower", "upper"),
    [
        ((1, 0.5), (1, 1), 0.3, 1.250000, None, 1.136364, 1.785714),
        ((1, 0.5), (1, 1), 0.75, 1.739130, None, 1.600000, 2.000000),
        ((1, 0.5), (1, 1), 1.2, 3.695652, None, 3.571429, 3.846154),
        ((1, 0.5), (2, 3), 1.5, 1.324803, 0.064508, 1.169649, 1.803244),
        ((1, 0.5), (2, 3), 2.5, 1.784015, 0.387524, 1.640530, 2.018560),
        ((0.1, 0.06, 0.05), (4, 3, 3), 0.4, 12.451045, 0.046269, 11.328148, 16.415317),
        ((1, 1), (2, 3), 3, 1.118076, 0.236152, 1.118076, 1.118076),
    ],
)
def test_unequal_servers_of_the_server_chain_notes(rates, slots, arrivals, response, wait_probability, lower, upper):
    """Notes on server chains, §2.9: an independent implementation, 6 digits after the point."""
    found, bounds = fastest_free(arrivals, rates, slots), fastest_free_bounds(arrivals, rates, slots)
    assert found.mean_response_s == pytest.approx(response, abs=6e-7)
    assert (bounds.response_lower_s, bounds.response_upper_s) == pytest.approx((lower, upper), abs=6e-7)
    if wait_probability:
        assert found.wait_probability == pytest.approx(wait_probability, abs=6e-7)


def exact_value(name, quantity):
    """Our exact value of one case of simulation_check.json."""
    if name == "mmc_c3_a2":
        return mmc(2, 1, 3).mean_wait_s
    if name == "mdc_c4_rho0.8":
        return mdc(3.2, 1, 4).mean_wait_s
    if name == "gim_gamma_cv2_4_c4_rho0.8":
        return gimc(3.2, 4, 1, 4).mean_wait_s
    if name == "ps_rho0.8":
        shared = processor_sharing(0.8, 1)
        return shared.mean_response_s if quantity == "mean_sojourn" else shared.response_variance_exponential_s2
    if name == "ffs_l4_1x3_0.6x2_0.25x4":
        return fastest_free(4, [1, 0.6, 0.25], [3, 2, 4]).mean_response_s
    if name == "ffs_l1.5_2x1_1x1":
        return fastest_free(1.5, [2, 1]).mean_response_s
    if name.startswith("polling"):
        queues, rate, walk = (
            (4, 0.15, Deterministic(mean_s=0.1)) if "N4" in name else (8, 0.1, Exponential(mean_s=0.05))
        )
        discipline = quantity.removeprefix("Wq_").replace("_", "-")
        return polling(queues, rate, Exponential(mean_s=1), walk, discipline).mean_wait_s
    batched = batched_service(12, 0.02, 0.0005, 100, 64, 128)
    return batched.mean_in_system if quantity == "L" else batched.blocking_probability


SIMULATED = json.loads((FOLDER / "simulation_check.json").read_text())["results"]


@pytest.mark.parametrize("row", SIMULATED, ids=[f"{row['tool']} {row['case']} {row['quantity']}" for row in SIMULATED])
def test_simulations_by_other_tools_hold_our_exact_value(row):
    """Ciw, SimPy and a jump chain, run for the oracles: 95 % intervals over 20 replications."""
    exact = exact_value(row["case"], row["quantity"])
    assert exact == pytest.approx(row["exact"], rel=1e-9)
    assert abs(row["mean"] - exact) <= row["ci95_half_width"]
