"""The user's own policies: built-in ones by name, dispatch functions compiled for the event loop or asked by SimPy."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from workbench.errors import InputError, UnknownName
from workbench.operating.scaling_rule import rule_of
from workbench.operating.system_record import System
from workbench.records import shown
from workbench.serving import ROUTES, chooser

DECISIONS = ("dispatch", "autoscaler")


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


def decisions(system: System, policies: Mapping[str, Any] | None, backend: str) -> Decisions:
    """Put the user's policies in place of a system's own.

    Parameters:
        system: whose other choices stay.
        policies: decision -> the name of a built-in policy. For *dispatch* also a Python function of the signature that
            `workbench.serving.chooser` states, or that function already compiled by `numba.cfunc`; for *autoscaler* a
            name with parameters, as `workbench.operating.Rule` takes them.
        backend: which engine will ask; a function that does not compile is asked by SimPy, whatever this says.

    Raises:
        UnknownName, InputError: no such decision or policy.
    """
    policies = dict(policies or {})
    for decision in policies:
        if decision not in DECISIONS:
            raise UnknownName("decision", decision, DECISIONS, "`wb.policies()` shows all.")
    if "autoscaler" in policies:
        rule = policies["autoscaler"]
        if callable(rule):
            raise InputError("is a function", "choose a rule of wb.policies() by name", field="autoscaler")
        system = system.replaced(autoscaler=rule_of(rule))
    dispatch = policies.get("dispatch", system.dispatch)
    if not isinstance(dispatch, str):
        return _own(system, dispatch, "dispatch", backend)
    if dispatch not in ROUTES:
        raise UnknownName("dispatch policy", dispatch, ROUTES)
    return Decisions(system.replaced(dispatch=dispatch) if dispatch != system.dispatch else system)


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
