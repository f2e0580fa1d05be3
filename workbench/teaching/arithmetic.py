"""The value of what a student wrote, where it is numbers and arithmetic alone; nothing of it is run."""

import ast
import math
import operator
from collections.abc import Mapping
from typing import Any

_BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_UNARY = {ast.UAdd: operator.pos, ast.USub: operator.neg}
_FUNCTIONS = {"abs": abs, "round": round, "min": min, "max": max, "int": int, "float": float}
_MATHS = ("ceil", "floor", "sqrt", "exp", "log", "log2", "log10")
_LARGEST_POWER = 64
_LARGEST = 1e300


class NotPlain(Exception):
    """It is more than numbers and arithmetic."""


def value_of(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """What an expression of numbers gives.

    Parameters:
        node: the expression: constants, arithmetic, `min` and the like, and `ceil` and the like of math or NumPy.
        known: names that have a value already.

    Raises:
        NotPlain: it holds something else, or has no value.

    >>> value_of(ast.parse("2 * math.ceil(nodes / 3)", mode="eval").body, {"nodes": 8})
    6
    """
    try:
        found = _value(node, known)
    except (ArithmeticError, ValueError, TypeError):
        raise NotPlain from None
    return found


def _value(node: ast.expr, known: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=int() | float() | str() | None as value):
            return value
        case ast.Name(id=name) if name in known:
            return known[name]
        case ast.UnaryOp(op=sign, operand=inner) if type(sign) in _UNARY:
            return _UNARY[type(sign)](_number(inner, known))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _BINARY:
            first, second = _number(left, known), _number(right, known)
            if isinstance(sign, ast.Pow) and abs(second) > _LARGEST_POWER:
                raise NotPlain
            return _small(_BINARY[type(sign)](first, second))
        case ast.Call(func=called, args=inside, keywords=[]):
            return _small(_function(called)(*(_number(item, known) for item in inside)))
    raise NotPlain


def _number(node: ast.expr, known: Mapping[str, Any]) -> int | float:
    found = _value(node, known)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise NotPlain
    return found


def _small(number: Any) -> Any:
    if isinstance(number, complex) or abs(number) > _LARGEST:
        raise NotPlain
    return number


def _function(called: ast.expr) -> Any:
    match called:
        case ast.Name(id=name) if name in _FUNCTIONS:
            return _FUNCTIONS[name]
        case ast.Attribute(value=ast.Name(id="math" | "np" | "numpy"), attr=name) if name in _MATHS:
            return getattr(math, name)
        case ast.Name(id=name) if name in _MATHS:
            return getattr(math, name)
    raise NotPlain
