"""The user's own policies: built-in ones by name, functions compiled for the event loop or asked by SimPy."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from workbench.errors import InputError, UnknownName
from workbench.operating.choices import System
from workbench.records import shown
from workbench.serving import ROUTES, chooser

DECISIONS = ("dispatch",)


class Decisions(NamedTuple):
    """What is decided how.

    Attributes:
        system: with the user's choices in it.
        chooser: a compiled dispatch function, or None.
        function: a Python dispatch function that only SimPy can ask, or None.
        notes: why SimPy serves where it was not asked to.
    """

    system: System
    chooser: Any = None
    function: Callable | None = None
    notes: tuple[str, ...] = ()


def decisions(system: System, policies: Mapping[str, str | Callable] | None, backend: str) -> Decisions:
    """Put the user's policies in place of a system's own.

    Parameters:
        system: whose other choices stay.
        policies: decision -> the name of a built-in policy, a Python function of the signature that
            `workbench.serving.chooser` states, or that function already compiled by `numba.cfunc`.
        backend: which engine will ask; a function that does not compile is asked by SimPy, whatever this says.

    Raises:
        UnknownName, InputError: no such decision or policy.
    """
    found = Decisions(system)
    for decision, policy in (policies or {}).items():
        if decision not in DECISIONS:
            raise UnknownName("decision", decision, DECISIONS, "`wb.policies()` shows all.")
        if isinstance(policy, str):
            if policy not in ROUTES:
                raise UnknownName("dispatch policy", policy, ROUTES)
            found = Decisions(system.replaced(dispatch=policy))
        else:
            found = _own(system, policy, decision, backend)
    return found


def _own(system: System, policy: Any, decision: str, backend: str) -> Decisions:
    compiled = hasattr(policy, "address")  # what numba.cfunc makes has one
    if not compiled and not callable(policy):
        raise InputError(f"is {shown(policy)}", "give a name or a function", field=decision)
    name = getattr(policy, "__name__", "a function")
    system = system.replaced(name=f"{system.name}, {decision} by {name}")
    if compiled:
        if backend != "compiled":
            remedy = "give the Python function to SimPy, or use backend='compiled'"
            raise InputError("is machine code", remedy, field=decision)
        return Decisions(system, chooser=policy)
    if backend != "compiled":
        return Decisions(system, function=policy)
    try:
        return Decisions(system, chooser=chooser(policy))
    except Exception as error:  # numba fails in many ways, some of them assertions of its own
        why = error.problem if isinstance(error, InputError) else f"does not compile: {_words(error)}"
        note = f"SimPy serves, because the {decision} function {name} {why}."
        return Decisions(system, function=policy, notes=(note,))


def _words(error: Exception) -> str:
    return f"{type(error).__name__} {' '.join(str(error).split())[:200]}".strip()
