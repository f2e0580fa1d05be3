"""The user's own policies: built-in ones by name, functions compiled for the event loop."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from workbench.errors import InputError, UnknownName, UserError
from workbench.operating.choices import System
from workbench.records import shown
from workbench.serving import ROUTES, chooser

DECISIONS = ("dispatch",)


class Decisions(NamedTuple):
    """A system with the user's choices in it, and a compiled dispatch function or None."""

    system: System
    chooser: Any


def decisions(system: System, policies: Mapping[str, str | Callable] | None, backend: str) -> Decisions:
    """Put the user's policies in place of a system's own.

    Parameters:
        system: whose other choices stay.
        policies: decision -> the name of a built-in policy, a Python function of the signature that
            `workbench.serving.chooser` states, or that function already compiled by `numba.cfunc`.
        backend: which engine will ask.

    Raises:
        UnknownName, UserError: no such decision or policy, a function that does not compile or that this backend cannot
            ask.
    """
    compiled = None
    for decision, policy in (policies or {}).items():
        if decision not in DECISIONS:
            raise UnknownName("decision", decision, DECISIONS, "`wb.policies()` shows all.")
        if isinstance(policy, str):
            if policy not in ROUTES:
                raise UnknownName("dispatch policy", policy, ROUTES)
            system = system.replaced(dispatch=policy)
            continue
        if not callable(policy) and not hasattr(policy, "address"):
            raise InputError(f"is {shown(policy)}", "give a name or a function", field=decision)
        if backend != "compiled":
            raise UserError(
                "SimPy dispatches by built-in policies only; name one of wb.policies(), or use backend='compiled'."
            )
        compiled = policy if hasattr(policy, "address") else chooser(policy)  # a cfunc has an address
        name = getattr(policy, "__name__", "a function")
        system = system.replaced(name=f"{system.name}, dispatch by {name}")
    return Decisions(system, compiled)
