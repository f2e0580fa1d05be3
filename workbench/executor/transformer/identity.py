"""Whether two runs computed the same: logits prove it, equal tokens alone prove little.

A weight off by 0.1, or a matrix rounded to half precision, left all of 48 tokens as they were. So logits are compared,
both runs having said the same tokens (teacher forcing): bit for bit where the order of additions is the same, else
within 1e-5 of the largest logit (ten times the noise of other orders, far below any fault that was tried); then the
tokens, wherever the reference's best two logits lie farther apart than twice the difference that was found.
"""

from collections.abc import Sequence

import numpy as np

from workbench.errors import InputError, WorkbenchError
from workbench.executor.transformer.decoding import Output
from workbench.records import Record

ALLOWED = 1e-5
LEAST_DISTINCT = 8
MOST_EXCLUDED = 0.01


class Identity(Record):
    """How two runs of the same requests compare.

    Attributes:
        requests, tokens: how many of each were compared.
        same_order: whether the order of additions was the same, so that every bit must be.
        difference: largest difference of logits over the largest logit; 0 for equal bits.
        changed: tokens that the reference would not have chosen though its choice was clear.
        excluded: share of tokens whose best two logits lie too close to tell.
        gap: smallest distance between the best two logits of the reference.
        distinct: least number of different tokens that a request's continuation has.
    """

    requests: int
    tokens: int
    same_order: bool
    difference: float
    changed: int
    excluded: float
    gap: float
    distinct: int

    @property
    def fault(self) -> str:
        """What speaks against identity, "" where nothing does."""
        if self.distinct < LEAST_DISTINCT:
            return (
                f"a continuation has {self.distinct} different tokens, fewer than the {LEAST_DISTINCT} of a fair test"
            )
        if self.same_order and self.difference > 0:
            return f"logits differ by {self.difference:.2g} of the largest, and should be equal bit for bit"
        if not self.difference <= ALLOWED:
            return f"logits differ by {self.difference:.2g} of the largest, more than {ALLOWED:g}"
        if self.changed:
            return f"{self.changed} of {self.tokens} tokens differ"
        if self.excluded >= MOST_EXCLUDED:
            return f"{self.excluded:.1%} of the tokens are too close to call, {MOST_EXCLUDED:.0%} or more"
        return ""

    @property
    def holds(self) -> bool:
        """Whether the two runs computed the same."""
        return not self.fault


class NotIdentical(WorkbenchError):
    """A run did not compute what the undisturbed run computes; `identity` has the numbers."""

    def __init__(self, what: str, identity: Identity):
        self.identity = identity
        super().__init__(f"{what} is not what the undisturbed run computes: {identity.fault}.")


def compare(reference: Sequence[Output], other: Sequence[Output], *, same_order: bool) -> Identity:
    """Lay a run beside the reference.

    Either the reference was teacher-forced on what the other run said, or both were on the same text: the tokens of the
    two are then equal where the other run chose as the reference would, and every logit has the same past.

    Parameters:
        reference: of each request the logits that are right.
        other: of each request the tokens that a run chose and the logits from which it did.
        same_order: whether additions went in the same order, see `Identity`.

    Errors: `InputError` for runs of different length.
    """
    if not reference or [one.logits.shape for one in reference] != [one.logits.shape for one in other]:
        raise InputError("holds other requests or lengths than the reference", "compare equal texts", field="other")
    right = np.concatenate([one.logits for one in reference])
    found = np.concatenate([one.logits for one in other])
    tokens = np.concatenate([one.tokens for one in other])
    top = np.partition(right, -2, axis=1)[:, -2:]
    gaps, apart = top[:, 1] - top[:, 0], float(np.abs(found - right).max())
    clear = gaps > 2 * apart
    return Identity(
        requests=len(reference),
        tokens=len(tokens),
        same_order=same_order,
        difference=apart / float(np.abs(right).max()),
        changed=int((tokens != right.argmax(1))[clear].sum()),
        excluded=float(1 - clear.mean()),
        gap=float(gaps.min()),
        distinct=min(len(set(one.tokens.tolist())) for one in other),
    )
