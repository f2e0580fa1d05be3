"""Named tuples of arrays that kernels are given as one address.

numba passes every part of every array by itself: its data, its size, each length and each stride. Of four tuples with
two dozen arrays these are some 250 values at every call, which a compiler of hundreds of small functions spends most of
its time on. A class under `by_reference` is one value instead. What a kernel does with it looks the same: it reads
fields, and fills the arrays that they are; the tuple itself nobody changes.
"""

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import UnsupportedError
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import NativeValue, models, register_model, typeof_impl, unbox

_WORD = ir.IntType(64)


class Reference(types.Type):
    """The address of the fields of a named tuple: arrays, whole numbers, None and other references."""

    def __init__(self, name: str, fields: tuple[tuple[str, types.Type], ...]):
        self.fields = fields
        self.places, place = {}, 0
        for field, kind in fields:
            self.places[field] = place
            place += _words(kind)
        super().__init__(f"{name}({', '.join(f'{field}: {kind}' for field, kind in fields)})")


def _words(kind: types.Type) -> int:
    """How many words a field is in memory: an array is the address of its data, then its shape."""
    if isinstance(kind, types.Array):
        return 1 + kind.ndim
    return 0 if isinstance(kind, types.NoneType) else 1


register_model(Reference)(models.OpaqueModel)


def by_reference(named_tuple: type) -> type:
    """Let kernels take tuples of this class by their address.

    Their fields are contiguous arrays, whole numbers, None, or tuples of other such classes; a kernel that is given
    others raises a TypeError.
    """

    @typeof_impl.register(named_tuple)
    def _(value, context):
        fields = tuple((name, typeof_impl(getattr(value, name), context)) for name in named_tuple._fields)
        for name, kind in fields:
            contiguous = isinstance(kind, types.Array) and kind.layout == "C"
            if not contiguous and not isinstance(kind, types.Integer | types.NoneType | Reference):
                raise TypeError(f"{named_tuple.__name__}.{name} is no contiguous array, whole number or None: {kind}.")
        return Reference(named_tuple.__name__, fields)

    return named_tuple


class _Memory:
    """The words of a tuple, and what they point to."""

    def __init__(self, fields: tuple):
        words, self.inner = [], []
        for field in fields:
            if isinstance(field, np.ndarray):
                words += [field.ctypes.data, *field.shape]
            elif isinstance(field, tuple):
                self.inner.append(_Memory(field))
                words.append(self.inner[-1].address)
            elif field is not None:
                words.append(field)
        self.words = np.array(words, np.int64)
        self.address = self.words.ctypes.data


@unbox(Reference)
def _unbox(kind, value, c):
    memory_of = c.pyapi.unserialize(c.pyapi.serialize_object(_Memory))
    memory = c.pyapi.call_function_objargs(memory_of, [value])
    number = c.pyapi.object_getattr_string(memory, "address")
    address = c.pyapi.long_as_voidptr(number)
    c.pyapi.decref(number)
    c.pyapi.decref(memory_of)
    return NativeValue(address, cleanup=lambda: c.pyapi.decref(memory))


@infer_getattr
class _Fields(AttributeTemplate):
    key = Reference

    def generic_resolve(self, kind, name):
        return dict(kind.fields).get(name)


def word_of(builder, address, k):
    """The instruction that reads word `k` at an address."""
    words = builder.bitcast(address, _WORD.as_pointer())
    loaded = builder.load(builder.gep(words, [ir.IntType(32)(k)], inbounds=True))
    # Nobody writes there while a kernel runs: what has been read once need not be read again.
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


@lower_getattr_generic(Reference)
def _field(context, builder, kind, address, name):
    """Whole numbers, None and other references; arrays are read by `workbench.lowering`, part by part."""
    member = dict(kind.fields)[name]
    if isinstance(member, types.Array):
        raise UnsupportedError(f"{kind.name.partition('(')[0]}.{name} can be read in kernels of workbench.jit only.")
    if isinstance(member, types.NoneType):
        return context.get_dummy_value()
    number = word_of(builder, address, kind.places[name])
    return number if isinstance(member, types.Integer) else builder.inttoptr(number, cgutils.voidptr_t)
