"""How kernels become LLVM's code: numba's own way, with less to do for what kernels do most.

They read and fill single elements of contiguous arrays, take rows of these, and pass both on. numba writes some thirty
instructions for `table[k, 3]`, most of which LLVM finds out to be without effect; here they are four. To write, parse
and remove the others took a quarter of the time to compile. The machine code computes the same, bit for bit.
"""

import operator
from collections import Counter
from types import BuiltinFunctionType

from llvmlite import ir
from llvmlite.ir.instructions import InsertValue
from numba.core import cgutils, types
from numba.core import ir as numba_ir
from numba.core.analysis import compute_cfg_from_blocks, compute_use_defs
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import BaseNativeLowering
from numba.core.typing.context import Context
from numba.np.numpy_support import as_dtype

from workbench.references import Reference, word_of

_WORD = ir.IntType(64)
_NITEMS, _ITEMSIZE, _DATA, _SHAPE, _STRIDES = 2, 3, 4, 5, 6
"""Places in numba's structure of an array; before these is who owns the memory, which a lean kernel does not count."""


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(BaseNativeLowering):
    """The stage of numba's compiler that writes LLVM's code, by `_Lower`."""

    _name = "kernel_lowering"

    @property
    def lowering_class(self):
        return _Lower


class _Typing(Context):
    """numba's knowledge of types, which asks what an operation on the same types gives once only."""

    typed: dict
    """What has been asked: kernels that count references may make arrays, others may not, so each kind has its own."""

    def resolve_function_type(self, func, args, kws):
        if kws or not isinstance(func, types.Function | BuiltinFunctionType | type):
            return super().resolve_function_type(func, args, kws)
        return self._remembered((func, args), super().resolve_function_type, func, args, kws)

    def resolve_setitem(self, target, index, value):
        given = target, index, value
        return self._remembered((operator.setitem, given), super().resolve_setitem, *given)

    def _remembered(self, key, resolve, *given):
        known = self.typed.get(key)
        if known is None:
            known = resolve(*given)
            if known is not None:
                self.typed[key] = known
        return known


class _CountedTyping(_Typing):
    typed: dict = {}


class _LeanTyping(_Typing):
    typed: dict = {}


def remembering(context: Context, counted: bool) -> Context:
    """The same context with a memory of its answers; what is told to one of them, both know.

    Parameters:
        counted: whether references to arrays are counted in what is compiled.
    """
    typing = object.__new__(_CountedTyping if counted else _LeanTyping)
    typing.__dict__ = context.__dict__
    return typing


class _Whole:
    """An array that is a value of LLVM's code."""

    def __init__(self, value):
        self.value = value

    def data(self, builder):
        return builder.extract_value(self.value, _DATA)

    def length(self, builder, axis):
        return builder.extract_value(self.value, (_SHAPE, axis))


class _Lazy:
    """A contiguous array of which only those parts are read that somebody needs."""

    def whole(self, context, builder, kind):
        """As numba passes it."""
        lengths = [self.length(builder, axis) for axis in range(kind.ndim)]
        size = _WORD(as_dtype(kind.dtype).itemsize)
        strides, count = [size], lengths[0]
        for length in lengths[:0:-1]:
            strides.insert(0, builder.mul(strides[0], length))
            count = builder.mul(count, length)
        array = ir.Constant(context.get_value_type(kind), None)
        parts = {_NITEMS: count, _ITEMSIZE: size, _DATA: self.data(builder)}
        parts |= {(_SHAPE, axis): length for axis, length in enumerate(lengths)}
        parts |= {(_STRIDES, axis): stride for axis, stride in enumerate(strides)}
        for place, part in parts.items():
            array = builder.insert_value(array, part, place)
        return array


class _Field(_Lazy):
    """An array of a tuple that is passed by reference."""

    def __init__(self, address, first, pointer):
        self.address, self.first, self.pointer = address, first, pointer

    def data(self, builder):
        return builder.inttoptr(word_of(builder, self.address, self.first), self.pointer)

    def length(self, builder, axis):
        return word_of(builder, self.address, self.first + 1 + axis)


class _Row(_Lazy):
    """What remains of an array behind so many first indices."""

    def __init__(self, array, indices, begin):
        self.array, self.indices, self.begin = array, indices, begin

    def data(self, builder):
        return self.begin

    def length(self, builder, axis):
        return self.array.length(builder, axis + self.indices)


class _Builder(ir.IRBuilder):
    """Takes no part out of a value into which it has just been put."""

    def extract_value(self, agg, idx, name=""):
        idx = list(idx) if isinstance(idx, list | tuple) else [idx]
        while isinstance(agg, InsertValue):
            inserted = list(agg.indices)
            if inserted == idx[: len(inserted)]:
                agg, idx = agg.value, idx[len(inserted) :]
                if not idx:
                    return agg
            elif idx == inserted[: len(idx)]:
                break  # a part of what is asked for
            else:
                agg = agg.aggregate
        return super().extract_value(agg, idx, name)


class _Lower(Lower):
    """numba's translation of a function's instructions.

    Where references to arrays are not counted, as in lean and inner kernels, nothing is done when a variable ends, rows
    are `_Lazy`, and what is set once needs no place in memory.
    """

    def _find_singly_assigned_variable(self):
        self._counted = self.context.enable_nrt
        if self._counted or self.func_ir.func_id.is_generator:
            super()._find_singly_assigned_variable()
            return
        uses, before = compute_use_defs(self.blocks), compute_cfg_from_blocks(self.blocks).dominators()
        sets = Counter(one.target.name for block in self.blocks.values() for one in block.find_insts(numba_ir.Assign))
        set_in = {name: offset for offset, names in uses.defmap.items() for name in names}
        once = {name for name, times in sets.items() if times == 1}
        for offset, names in uses.usemap.items():
            # Blocks are written in the order of their offsets, and a value must have been set on all ways to where it
            # is read.
            once -= {name for name in once & names if not (set_in[name] < offset and set_in[name] in before[offset])}
        self._singly_assigned_vars, self._blk_local_varmap = once, {}

    def setup_function(self, fndesc):
        super().setup_function(fndesc)
        self.builder.__class__ = _Builder

    def loadvar(self, name):
        value = super().loadvar(name)
        return value.whole(self.context, self.builder, self.typeof(name)) if isinstance(value, _Lazy) else value

    def storevar(self, value, name, argidx=None):
        in_memory = name not in self._singly_assigned_vars
        if isinstance(value, _Lazy) and in_memory:
            value = value.whole(self.context, self.builder, self.typeof(name))
        if in_memory and not self._counted:
            self.builder.store(value, self.getvar(name))
        else:
            super().storevar(value, name, argidx)

    def delvar(self, name):
        if self._counted and not isinstance(self._blk_local_varmap.get(name), _Lazy):
            super().delvar(name)

    def lower_inst(self, inst):
        if isinstance(inst, numba_ir.Assign) and not self._counted:
            self.storevar(self.lower_assign(self.typeof(inst.target.name), inst), inst.target.name)
        elif not (isinstance(inst, numba_ir.SetItem | numba_ir.StaticSetItem) and self._fill(inst)):
            super().lower_inst(inst)

    def lower_assign(self, ty, inst):
        value, found = inst.value, None
        if isinstance(value, numba_ir.Var) and self.typeof(value.name) == ty:
            found = self._blk_local_varmap.get(value.name)
            found = found if isinstance(found, _Lazy) else None
        elif isinstance(value, numba_ir.Expr) and value.op == "getattr":
            found = self._attribute(ty, value)
        elif isinstance(value, numba_ir.Expr) and value.op in ("getitem", "static_getitem"):
            found = self._item(ty, value)
        return super().lower_assign(ty, inst) if found is None else found

    def _attribute(self, ty, expression):
        """An array of a tuple, or the lengths of an array; None for all else."""
        of, name = self.typeof(expression.value.name), expression.value.name
        if isinstance(of, Reference) and isinstance(ty, types.Array):
            data = self.context.data_model_manager[ty].get_type("data")
            return _Field(self.loadvar(name), of.places[expression.attr], self.context.get_value_type(data))
        if type(of) is types.Array and expression.attr == "shape":
            array = self._array(name)
            return cgutils.pack_array(self.builder, [array.length(self.builder, k) for k in range(of.ndim)], _WORD)
        return None

    def _item(self, ty, expression):
        """An element of an array or one of its rows; None for all else."""
        index = expression.index if expression.op == "getitem" else expression.index_var
        signature, name = self.fndesc.calltypes[expression], expression.value.name
        if index is None or not self._is_plain(signature, name):
            return None
        kind, indices = signature.args[0], len(_kinds(signature.args[1]))
        if indices == kind.ndim:
            item = self.context.unpack_value(self.builder, kind.dtype, self._address(name, index.name, signature))
            return self.context.cast(self.builder, item, signature.return_type, ty)
        return None if self._counted else _Row(self._array(name), indices, self._address(name, index.name, signature))

    def _fill(self, inst) -> bool:
        """Whether an element has been filled; False for all else that `inst` may set."""
        signature = self.fndesc.calltypes[inst]
        if not self._is_plain(signature, inst.target.name):
            return False
        kind, index_kind, value_kind = signature.args
        if len(_kinds(index_kind)) < kind.ndim or not isinstance(value_kind, types.Number | types.Boolean):
            return False
        index = inst.index if isinstance(inst, numba_ir.SetItem) else inst.index_var
        place = self._address(inst.target.name, index.name, signature)
        given = self.loadvar(inst.value.name)
        given = self.context.cast(self.builder, given, self.typeof(inst.value.name), value_kind)
        given = self.context.cast(self.builder, given, value_kind, kind.dtype)
        self.context.pack_value(self.builder, kind.dtype, given, place)
        return True

    def _is_plain(self, signature, name) -> bool:
        """Whether a contiguous array of numbers is given whole numbers as indices, whose bounds nobody checks."""
        if type(self.typeof(name)) is not types.Array or self.context.enable_boundscheck:
            return False
        kind, indices = signature.args[0], _kinds(signature.args[1])
        return (
            kind == self.typeof(name)
            and kind.layout == "C"
            and kind.aligned
            and isinstance(kind.dtype, types.Number | types.Boolean)
            and 0 < len(indices) <= kind.ndim
            and all(isinstance(index, types.Integer) for index in indices)
        )

    def _array(self, name):
        kept = self._blk_local_varmap.get(name)
        return kept if isinstance(kept, _Lazy) else _Whole(self.loadvar(name))

    def _address(self, name, index_name, signature):
        """Of what the indices choose; those below 0 count from the end."""
        builder, array, value = self.builder, self._array(name), self.loadvar(index_name)
        given, wanted, values = self.typeof(index_name), _kinds(signature.args[1]), [value]
        if isinstance(given, types.BaseTuple):
            values = [builder.extract_value(value, axis) for axis in range(len(wanted))]
        place = None
        for axis in range(signature.args[0].ndim):
            index = None
            if axis < len(wanted):
                index = self.context.cast(builder, values[axis], _kinds(given)[axis], wanted[axis])
                known = isinstance(index, ir.Constant) and index.constant >= 0
                if wanted[axis].signed and not known:
                    from_end = builder.add(index, array.length(builder, axis))
                    index = builder.select(builder.icmp_signed("<", index, _WORD(0)), from_end, index)
            if place is None:
                place = index
            else:
                place = builder.mul(place, array.length(builder, axis))
                place = place if index is None else builder.add(place, index)
        return builder.gep(array.data(builder), [place])

    def lower_binop(self, resty, expr, op):
        if expr.static_lhs is not numba_ir.UNDEFINED or expr.static_rhs is not numba_ir.UNDEFINED:
            return super().lower_binop(resty, expr, op)
        typing, signature = remembering(self.context.typing_context, self._counted), self.fndesc.calltypes[expr]
        sides = [
            self.context.cast(self.builder, self.loadvar(side.name), self.typeof(side.name), kind)
            for side, kind in zip((expr.lhs, expr.rhs), signature.args, strict=True)
        ]
        chosen = typing.resolve_function_type(op, signature.args, {})
        result = self.context.get_function(typing.resolve_value_type(op), chosen)(self.builder, sides)
        return self.context.cast(self.builder, result, signature.return_type, resty)


def _kinds(index) -> tuple:
    """The types of one index or of several."""
    return tuple(index.types) if isinstance(index, types.BaseTuple) else (index,)
