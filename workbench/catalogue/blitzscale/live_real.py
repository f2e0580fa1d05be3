"""Live pairs of real processes as experiments use them: run as scale models, checked, read in layer times."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.judging import Draft
from workbench.catalogue.pacing import cite_pacing
from workbench.catalogue.parameters import Par
from workbench.errors import UserError
from workbench.profiles import model
from workbench.results import Verdict
from workbench.scaling.model.live_pair import LivePair, share_batches

STOOD_FOR, TOKENS = "llama-2-7b", 2000
"""Whose layer a layer of the small transformer stands for, and the prompt tokens of a batch (OSDI'25 paper §5.2)."""

PROMPTS, PROMPT_TOKENS, FOLLOW = 2, 16, 15
LONGEST_S = 60.0
RIGHT = "tokens of batches that two real instances share are those of one undisturbed model"

PrefillRate = Annotated[
    float,
    Par(
        "Prefill rate of Llama2-7B, for real runs",
        "1/s",
        low=1e3,
        high=1e5,
        log=True,
        status="published",
        source="artifact's configuration",
    ),
]


class RealPairs:
    """Runs live pairs with one model and one pool of processes.

    Attributes:
        identity: a row for each run: `run, difference, gap, distinct, tokens, same_order, fault`.
    """

    def __init__(self, context: Context, layers: int, tokens_per_s: float, folder: Path, pool: Any):
        from workbench.executor.transformer import Shape, write_model

        self._context, self._pool, self._scale = context, pool, None
        self._full = model(STOOD_FOR)
        self._unit_s = TOKENS / tokens_per_s / self._full.layers
        self._shape = Shape(layers=layers, hidden=128, ffn=344, vocabulary=320, longest=PROMPT_TOKENS + FOLLOW + 1)
        context.tell("real run: writing the model")
        self._model = write_model(folder, self._shape, context.seed, layers, f"seed-{context.seed}")
        self._random = context.random("prompts")
        self.identity: list[dict[str, Any]] = []

    def run(self, label: str, pair: LivePair, **others: Any) -> Any:
        """One real run (`workbench.scaling.real.LiveShare`), σ, θ, overhead and waiting entered into the ledger.

        Parameters:
            label: of the run.
            pair: in layer times.
            others: of `workbench.scaling.real.LiveScaleOut`.
        """
        from workbench.scaling.real import LiveScaleOut, Prompt, check_outputs, share_scaled
        from workbench.scaling.real.live_sharing import SHORTEST_LAYER_S

        self._context.tell(f"real run: {label}")
        last = max(share_batches(pair).finish_s.max(), pair.load_s * pair.layers) * SHORTEST_LAYER_S
        if last > LONGEST_S:
            raise UserError(
                f"A real run would take {last:.0f} s, more than {LONGEST_S:.0f}; take fewer batches or layers."
            )
        asked = LiveScaleOut(pair=pair, **others)
        batches = [
            tuple(
                tuple(self._random.integers(0, self._shape.vocabulary, PROMPT_TOKENS).tolist()) for _ in range(PROMPTS)
            )
            for _ in range(asked.chains * len(pair.arrival_s))
        ]
        full_bytes = self._full.layer_bytes * pair.layers
        run = share_scaled(
            asked,
            self._model,
            batches,
            self._unit_s,
            full_bytes,
            pool=self._pool,
            stop=self._context.give_way,
            scale=self._scale,
        )
        self._scale = run.scale  # a θ that was found too small is too small for the next run too
        cite_pacing(self._context, label, run)
        texts = [Prompt(prompt, FOLLOW + 1) for batch in batches for prompt in batch]
        identity = check_outputs(run, self._model, texts, self._pool, self._context.give_way)
        self.identity.append({"run": label, **identity.model_dump(), "fault": identity.fault})
        return run


@contextmanager
def real_pairs(context: Context, layers: int, tokens_per_s: float, processes: int = 3) -> Iterator[RealPairs]:
    """Processes and a model of so many layers for real runs; `tokens_per_s` is the rate at full size."""
    from workbench.executor.processes import Pool

    with tempfile.TemporaryDirectory(prefix="workbench-") as folder, Pool(processes) as pool:
        yield RealPairs(context, layers, tokens_per_s, Path(folder), pool)


def judge_identity(draft: Draft) -> list[Verdict]:
    """Whether what was shared is what one model says, from a table `identity`; nothing where there is none."""
    checked: pl.DataFrame | None = draft.tables.get("identity")
    if checked is None:
        return []
    faults = [fault for fault in checked["fault"] if fault]
    most, gap = checked["difference"].max(), checked["gap"].min()
    how = "all logits equal bit for bit" if most == 0 else f"logits within {most:.1g} of the largest"
    return [
        Verdict(
            claim=RIGHT,
            published="identical",
            ours="not identical" if faults else "identical",
            strength="exact",
            verdict="differs" if faults else "reproduced",
            reason=f"{faults[0]}. Assumed here: the machine's library keeps the bits of rows"
            if faults
            else f"{how}; smallest distance of the best two logits {gap:.2g}, at least {checked['distinct'].min()} "
            f"different tokens, {checked['tokens'].sum():,} tokens in all",
            mode=draft.mode,
            seeds=draft.seeds,
        )
    ]
