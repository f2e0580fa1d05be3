"""One wrapper round `numba.njit` whose on-disk cache cannot go stale.

numba's own cache looks at one file only: edit a function that a cached kernel calls from another file, and the kernel
keeps the old result without a word (numba issue 1833). Here the cache folder's name is a hash of the kernel's file and
of every workbench file it imports, directly or through others, together with the versions of numba, numpy and Python
and whether array bounds are checked.
"""

import functools
import gc
import hashlib
import os
import platform
import re
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numba
from llvmlite.binding import Linkage
from numba.core import caching, config
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.options import DefaultOptions
from numba.core.typed_passes import NativeLowering, NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes

from workbench.lowering import KernelLowering, remembering
from workbench.paths import cache_folder

_ROOT = Path(__file__).resolve().parent
_KERNELS: dict[str, Any] = {}
_LEAN = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}
_NEW_OBJECTS = 100_000
"""So many make Python look for garbage while a kernel is compiled: at its usual 700, that takes a tenth of the time."""
_FOR_NEW_ARRAYS = (InlineClosureLikes, NopythonRewrites)
"""Stages of numba's compiler for comprehensions and expressions of arrays, of which lean kernels have none."""


class _Part(JITCodeLibrary):
    """The code of an inner kernel, which is optimised and made machine code only as part of what calls it.

    By itself numba would do both at every depth of calls anew, since it links the whole of what is called into each
    caller: with calls five or six deep that is a third of the time to compile.
    """

    def finalize(self):
        self._final_module.verify()
        self._finalized = True

    def get_pointer_to_function(self, name):
        return 0

    @property
    def codegen(self):
        return self

    def set_env(self, name, environment):
        """Only code with Python objects would look at its environment, and an inner kernel has none."""


class _Whole(JITCodeLibrary):
    """The code of a kernel with all parts that it calls, directly or through others."""

    def finalize(self):
        self._linking_libraries = _callers_first(self._linking_libraries)
        super().finalize()

    def _optimize_final_module(self):
        # Nothing else calls the parts: with arguments that nobody reads left out of calls, loops run twice as fast.
        for function in self._final_module.functions:
            if function.linkage == Linkage.linkonce_odr:
                function.linkage = Linkage.internal
        super()._optimize_final_module()


def _callers_first(libraries) -> list:
    """Libraries and all parts that these call, directly or through others, each behind all that call it.

    LLVM links only what is called by something that is there already.
    """
    found, order = set(), []

    def visit(library) -> None:
        if library not in found:
            found.add(library)
            for part in library._linking_libraries if isinstance(library, _Part) else ():
                visit(part)
            order.append(library)

    for library in libraries:
        visit(library)
    return order[::-1]


class _Flags(Flags):
    """How a kernel is compiled, as numba has it at hand meanwhile: one object for all that are compiled alike.

    By these numba looks up its own code for every operation of a kernel. To compare them value by value each time takes
    a seventh of the time to compile.
    """

    __hash__ = object.__hash__
    __eq__ = object.__eq__

    def copy(self):
        return _ALIKE.setdefault(repr(self), _Flags(self))


_ALIKE: dict[str, _Flags] = {}


class _Compiler(Compiler):
    def compile_extra(self, func):
        self.state.flags = _Flags(self.state.flags)
        self.state.typingctx = remembering(self.state.typingctx, bool(self.state.flags.nrt))
        return super().compile_extra(func)

    def define_pipelines(self):
        (stages,) = super().define_pipelines()
        stages.add_pass_after(KernelLowering, NativeLowering)
        left_out = {NativeLowering} if self.state.flags.nrt else {NativeLowering, *_FOR_NEW_ARRAYS}
        stages.passes = [stage for stage in stages.passes if stage[0] not in left_out]
        stages.finalize()
        return [stages]


class _PartCompiler(_Compiler):
    def define_pipelines(self):
        self.state.library = _Part(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return super().define_pipelines()


class _WholeCompiler(_Compiler):
    def compile_extra(self, func):
        often, *rest = gc.get_threshold()
        gc.set_threshold(often and max(often, _NEW_OBJECTS), *rest)
        try:
            return super().compile_extra(func)
        finally:
            gc.set_threshold(often, *rest)

    def define_pipelines(self):
        self.state.library = _Whole(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        self.state.library.enable_object_caching()
        return super().define_pipelines()


def kernel(function):
    """Compile a function with numba in nopython mode and keep the machine code on disk.

    Every kernel is entered under its full name, see `kernels`. They take floats, integers and contiguous arrays in SI
    units and fill arrays that the caller made. They never use `fastmath` (NaN carries meaning here) or `parallel` (they
    are called from widget threads).
    """
    return _kept(function, numba.njit(pipeline_class=_WholeCompiler)(function))


def lean_kernel(function):
    """A `kernel` that makes no arrays, without the counting of references to those it is given.

    Every view of a row and every call that passes arrays on costs some ten atomic additions otherwise, which is most of
    the time of an event loop of small functions. What such a kernel calls may be lean or not; it must not make arrays
    (numba refuses to compile it then). Where numba no longer knows the option, it is an ordinary kernel.
    """
    return _kept(function, numba.njit(pipeline_class=_WholeCompiler, **_LEAN)(function))


def inner_kernel(function):
    """A `lean_kernel` that only other kernels call; a call from Python is refused.

    It has no machine code of its own, on disk or elsewhere, and no name in `kernels`: it is part of those that call it.
    What would let Python call it is left out too.
    """
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _PartCompiler, **_LEAN}
    dispatcher = numba.njit(**options)(function)
    if not config.DISABLE_JIT:
        # Without an entry for Python numba would jump to address 0: it is told of no machine code, and of no compiler.
        dispatcher._insert = lambda *_, **__: None
        dispatcher._compile_for_args = functools.partial(_refuse, function.__qualname__)
    return dispatcher


def _refuse(name: str, *_: Any, **__: Any):
    raise TypeError(f"{name} is an inner kernel; only other kernels can call it.")


def _kept(function, dispatcher):
    if not config.DISABLE_JIT:
        with suppress(RuntimeError):  # no writable cache folder: compile once in every process instead
            dispatcher._cache = _Cache(function)
    _KERNELS[f"{function.__module__}.{function.__qualname__}"] = dispatcher
    return dispatcher


def kernels() -> dict[str, Any]:
    """Every kernel of the modules imported so far, by module and name; without inner ones."""
    return dict(_KERNELS)


def kernels_folder() -> Path:
    """Where machine code is kept: `NUMBA_CACHE_DIR` where that is set, else in our own cache folder."""
    return Path(config.CACHE_DIR) if config.CACHE_DIR else cache_folder() / "kernels"


def is_compiled(name: str) -> bool:
    """Whether a kernel has machine code, in this process or on disk for the next one."""
    cache = _KERNELS[name]._cache
    return bool(_KERNELS[name].signatures) or (isinstance(cache, _Cache) and bool(cache._cache_file._load_index()))


def sources(file: str | Path) -> dict[Path, bytes]:
    """A workbench file and all workbench files it imports, transitively, each with a hash of what stands in it."""
    seen: dict[Path, bytes] = {}
    waiting = [Path(file).resolve()]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        status = path.stat()
        seen[path], imports = _digest_and_imports(path, status.st_mtime_ns, status.st_size)
        waiting += imports
    return seen


def source_key(file: str | Path) -> str:
    """Hash of a workbench file and of all workbench files it imports, transitively (hex, 16 characters)."""
    seen = sources(file)
    versions = f"{version('numba')} {version('numpy')} {sys.version} {platform.machine()}"
    total = hashlib.sha256(f"{versions} bounds checked: {bool(config.BOUNDSCHECK)}".encode())
    for path in sorted(seen):
        total.update(str(path).encode() + seen[path])
    return total.hexdigest()[:16]


@functools.cache
def _digest_and_imports(path: Path, modified_ns: int, size: int) -> tuple[bytes, list[Path]]:
    source = path.read_bytes()
    package, names = path.relative_to(_ROOT.parent).parts if path.is_relative_to(_ROOT.parent) else (), []
    for dots, base, several, alone in _IMPORT.findall(_IGNORED.sub("", source.decode())):
        if alone:
            names += _first_words(alone)
            continue
        if dots:
            base = ".".join((*package[: -len(dots)], *filter(None, [base])))
        names += [base, *(f"{base}.{name}" for name in _first_words(several.strip("()")))]
    return hashlib.sha256(source).digest(), [found for name in names if (found := _file_of(name)) is not None]


_IGNORED = re.compile(r"#[^\n]*|\\\n")
_IMPORT = re.compile(
    r"(?:^|[;:])[ \t]*(?:from[ \t]*(\.*)[ \t]*([\w.]*?)\s*\bimport\b\s*(\([^)]*\)|[^\n;]*)|import[ \t]+([^\n;]+))", re.M
)
"""All import statements, and maybe more in texts: to parse every file would be a third of what an import takes."""


def _first_words(names: str) -> list[str]:
    """`a as b, c` -> a, c."""
    return [words[0] for part in names.split(",") if (words := part.split())]


def _file_of(module: str) -> Path | None:
    parts = module.split(".")
    if parts[0] != _ROOT.name:
        return None
    place = _ROOT.joinpath(*parts[1:])
    for candidate in (place.with_suffix(".py"), place / "__init__.py"):
        if candidate.is_file() and candidate.resolve() != _ROOT / "__init__.py":
            return candidate.resolve()
    return None


class _Locator(caching.UserWideCacheLocator):
    """Puts a function's machine code under a folder named after `source_key`."""

    def __init__(self, py_func, py_file):
        self._py_file = py_file
        self._lineno = py_func.__code__.co_firstlineno
        stem = Path(py_file).resolve()
        name = ".".join(stem.relative_to(_ROOT).with_suffix("").parts) if stem.is_relative_to(_ROOT) else stem.stem
        self._cache_path = os.fspath(kernels_folder() / f"{name}-{source_key(py_file)}")

    def get_cache_path(self):
        return self._cache_path


class _Implementation(caching.CompileResultCacheImpl):
    _locator_classes = [_Locator]


class _Cache(caching.FunctionCache):
    _impl_class = _Implementation
