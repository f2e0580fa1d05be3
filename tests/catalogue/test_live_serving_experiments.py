"""Experiments in which real processes serve while they load: formulas by hand, recorded runs, what runs must show."""

import math
import multiprocessing
import sys
import threading

import numpy as np
import polars as pl
import pytest

import workbench as wb
from workbench.catalogue import running, spec
from workbench.catalogue.context import Stopped
from workbench.catalogue.judging import Draft
from workbench.catalogue.lambdascale.packing import BUFFERED, EVERY_OFF, ON_ARRIVAL, PIECES, _interval, _judge
from workbench.catalogue.lambdascale.streamed_start import PIPELINES, SOONER, WAITING

ALPHA_S, BYTES_PER_S, SIZE, PASS_S = 6.28e-3, 42e9, 13_476_831_232, 0.014
STEP_S = ALPHA_S + SIZE / 8 / BYTES_PER_S
WAYS = (PIECES, ON_ARRIVAL, BUFFERED)


def arrival(vertex, block, blocks, dimensions):
    """Step (from 0) in which a vertex of a binomial pipeline of 2^l nodes gets a block: notes on λScale, §2.1."""
    turned = ((vertex >> block % dimensions) | (vertex << -block % dimensions)) & (2**dimensions - 1)
    highest = int(math.log2(turned))
    if block == blocks - 1:
        return blocks - 1 + highest
    return block + (highest if turned % 2 else dimensions)


class TestStreamedStart:
    def firsts(self, result, backend):
        table = result.tables["first"]
        rows = table.rows(named=True)
        return {(row["sources"], row["mode"]): row["first_token_s"] for row in rows if row["backend"] == backend}

    def test_the_formula_is_steps_times_step_time_and_one_pass(self):
        """k = 2 of 4 nodes: jointly held after 8/2 steps, complete after 8; k = 1: after 8, and the first node."""
        found = self.firsts(wb.experiment("lambdascale/streamed-start").run("analytic"), "analytic")
        first_complete = min(max(arrival(v, c, 8, 2) for c in range(8)) + 1 for v in (1, 2, 3))
        assert found[2, PIPELINES] == pytest.approx(4 * STEP_S + PASS_S)
        assert found[2, WAITING] == pytest.approx(8 * STEP_S + PASS_S)
        assert found[1, PIPELINES] == pytest.approx(8 * STEP_S + PASS_S)
        assert found[1, WAITING] == pytest.approx(first_complete * STEP_S + PASS_S)

    def test_dispatches_cost_pipelines_more_than_single_nodes(self):
        """Two nodes with four blocks each: two dispatches a pass, one where a node has everything."""
        free, dear = (
            self.firsts(wb.experiment("lambdascale/streamed-start").run("analytic", overhead_s=cost), "analytic")
            for cost in (0.0, 0.01)
        )
        assert dear[2, PIPELINES] - free[2, PIPELINES] == pytest.approx(0.02)
        assert dear[2, WAITING] - free[2, WAITING] == pytest.approx(0.01)

    def test_the_recorded_run_keeps_every_bit_and_the_predicted_ratio(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "torch", None)
        self.shows(wb.experiment("lambdascale/streamed-start").run(("analytic", "torch")), "recorded")

    @pytest.mark.real
    @pytest.mark.quiet
    def test_a_real_run_keeps_every_bit_and_the_predicted_ratio(self):
        self.shows(wb.experiment("lambdascale/streamed-start").run(("analytic", "torch"), quick=True), "torch")

    @pytest.mark.real
    def test_stop_ends_a_real_run_in_the_middle(self):
        """The Stop button is pressed while the first run serves; nothing of it is left running."""
        pressed, before = threading.Event(), set(multiprocessing.active_children())

        def progress(text):
            if "k = 1" in text:
                threading.Timer(0.2, pressed.set).start()

        with pytest.raises(Stopped):
            running.run(
                spec.find("lambdascale/streamed-start"), {}, backends="torch", quick=True, stop=pressed,
                progress=progress,
            )  # fmt: skip
        assert set(multiprocessing.active_children()) <= before

    def shows(self, result, backend):
        assert set(result.verdicts()["verdict"]) == {"reproduced"}
        for agreement in result.outcome.agreement:
            assert agreement.agrees, agreement
        checked = result.tables["identity"]
        assert checked["difference"].max() == 0 or not checked["same_order"].any()
        assert checked["distinct"].min() >= 8
        assert checked["gap"].min() > 0
        assert (checked["tokens"] == 8 * 24).all()
        ratios = {
            int(x): value
            for series, x, value, who in result.tables["headline"].select("series", "x", "value", "backend").rows()
            if series == SOONER and who == backend
        }
        assert ratios[2] == pytest.approx((8 * STEP_S + PASS_S) / (4 * STEP_S + PASS_S), rel=0.15)
        assert "no token of any is another" in result.sentence
        cited = result.sources()["quantity"].to_list()
        for quantity in ("σ", "θ", "overhead", "waiting"):
            assert f"{quantity} of 7B, k = 2, {PIPELINES}" in cited


class TestModeSwitch:
    def test_the_recorded_run_keeps_every_bit_and_the_formulas_time(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "torch", None)
        result = wb.experiment("lambdascale/mode-switch").run(("analytic", "torch"))
        assert result.outcome.backends == ("analytic", "recorded")
        assert "reproduced" in result.verdicts()["verdict"].to_list()
        for agreement in result.outcome.agreement:
            assert agreement.agrees, agreement
        checked = result.tables["identity"]
        assert checked["tokens"].to_list() == [32, 32, 256, 256, 1024, 1024]
        assert checked["difference"].max() == 0
        assert checked["distinct"].min() >= 8
        assert "what follows is the same either way" in result.sentence

    def test_times_at_full_size_by_hand(self, monkeypatch):
        """1,024 tokens of 7B: 2 x 6.738e9 operations each at half of 989e12 a second; 7 senders of 1/8 of the KV."""
        monkeypatch.setitem(sys.modules, "torch", None)
        result = wb.experiment("lambdascale/mode-switch").run(("analytic", "torch"))
        rows = result.tables["times"].filter(pl.col("backend") == "recorded", pl.col("tokens") == 1024)
        assert rows["recompute_s"][0] == pytest.approx(2 * 6.738415616e9 * 1024 / (0.5 * 989e12), rel=0.15)
        assert rows["move_s"][0] == pytest.approx(7 * (ALPHA_S + 1024 * 524_288 / 8 / BYTES_PER_S), rel=0.15)


class TestPacking:
    def test_the_formula_is_overhead_and_bytes_for_every_message(self):
        """1 GB in messages of 1 MiB at 100 µs and 2 GB/s: 953.67 messages, 0.1 ms each, and half a second."""
        result = wb.experiment("lambdascale/packing").run("analytic", overhead_us=100.0, gb_per_s=2.0)
        row = result.tables["sweep"].filter(pl.col("message_bytes") == 1 << 20)
        assert row["gigabyte_s"][0] == pytest.approx(1e9 / 2**20 * 1e-4 + 0.5)
        assert "below 195 KiB overhead takes more than half of the time" in result.sentence

    def test_the_formula_of_pieces(self):
        """A block of 16 MiB is 7.626 ms at 2.2 GB/s; 16 messages rather than one add 15 x 150 µs; three have a rest."""
        pieces = wb.experiment("lambdascale/packing").run("analytic").tables["ablation"]
        assert pieces["slower"].to_list() == pytest.approx([1.0, (7.626 + 16 * 0.150) / (7.626 + 0.150)], rel=1e-4)
        assert pieces["seconds"][0] == pytest.approx(4 * 7.776e-3, rel=1e-4)
        rest = wb.experiment("lambdascale/packing").run("analytic", block_mib=5, piece_mib=2).tables["ablation"]
        assert rest["seconds"][1] == pytest.approx(4 * (3 * 150e-6 + 5 * 2**20 / 2.2e9))

    def test_the_recorded_run_tells_overhead_from_bytes(self, monkeypatch):
        """Sizes that were not fitted lie within half of the fit; leaving all three advantages out is slower."""
        monkeypatch.setitem(sys.modules, "torch", None)
        result = wb.experiment("lambdascale/packing").run(("analytic", "torch"))
        (agreement,) = result.outcome.agreement
        assert agreement.agrees, agreement
        verdicts = result.verdicts()
        assert len(verdicts) == 3
        assert "differs" not in verdicts["verdict"].to_list()
        off = result.tables["ablation"].filter(pl.col("way") == EVERY_OFF)["slower"]
        assert off.median() > 1

    @pytest.mark.parametrize(("turns", "low", "high"), [(9, 2, 8), (15, 4, 12), (21, 6, 16)])
    def test_the_interval_of_a_median(self, turns, low, high):
        """The sign test's tables: of 9, 15 and 21 readings 1, 3 and 5 may be left out at either end."""
        assert _interval(np.arange(1.0, turns + 1)) == (low, high)

    def test_a_way_that_is_faster_differs_and_one_that_straddles_is_undecided(self):
        def read(slower):
            rows = [{"backend": "torch", "way": way, "slower": value} for way in WAYS for value in slower]
            draft = Draft(None, {}, {"ablation": pl.DataFrame(rows)}, None, True, "", "full", (0,), "", None)
            return {verdict.verdict for verdict in _judge(draft)}

        assert read([1.5] * 9) == {"reproduced"}
        assert read([0.5] * 9) == {"differs"}
        assert read([0.5] * 4 + [1.5] * 5) == {"undecided"}


class TestBlockSizeSweep:
    def test_the_best_number_of_blocks_by_hand(self):
        """sqrt(c S / (αB)) with c = ceil(log2 n) - 1: 1 GB, 100 µs, 2 GB/s give 70.7 on 4, 100 on 8, 158.1 on 64."""
        result = wb.experiment("lambdascale/block-size-sweep").run("analytic", overhead_us=100.0, gb_per_s=2.0)
        best = dict(result.tables["best"].select("nodes", "blocks").rows())
        assert abs(best[4] - 70.7) <= 1
        assert best[8] == 100
        assert abs(best[64] - 158.1) <= 1

    def test_the_recorded_run_shows_the_elbow(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "torch", None)
        result = wb.experiment("lambdascale/block-size-sweep").run(("analytic", "torch"))
        assert result.verdicts()["verdict"].to_list() == ["reproduced"]
        assert all(agreement.agrees for agreement in result.outcome.agreement)
        assert result.tables["path"]["path"].to_list() == ["between two processes"]
