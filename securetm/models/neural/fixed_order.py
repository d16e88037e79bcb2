"""Products of matrices in which every number is one chain of fused multiply-adds, in the order of the inner index.

A library's product sums in another order for other numbers of rows, on other processors and with other numbers of threads.
Here nothing of that changes a bit: how the work is cut into tiles decides what is done when, and never in which order the
terms of one number are added. It runs on one thread and knows no topic models.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]  # it ships no types
from llvmlite.binding import get_host_cpu_features, get_process_triple  # type: ignore[import-untyped]
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from securetm.contracts import Array

_ROWS = 6  # of the left matrix in one tile: as many sums as every processor's registers hold
_BYTES = 64  # of one row of a tile; a compiler splits it where registers are shorter
_DEPTH = 512  # of the inner index before the next tile is begun, so that panels stay in a fast cache
_ABREAST = 8  # panels side by side, so that sums are read and written along their rows


def _has_fma() -> bool:
    """Whether the processor multiplies and adds in one instruction; if not, rows are rounded twice, and still alike."""
    x86 = get_process_triple().split("-")[0] in ("x86_64", "i386", "i686")
    return not x86 or bool(get_host_cpu_features().get("fma", False))


_FMA = _has_fma()


def _multiplied_and_added(builder: Any, kind: Any, name: str, terms: list[Any]) -> Any:
    if not _FMA:
        return builder.fadd(builder.fmul(terms[0], terms[1]), terms[2])
    kinds = ir.FunctionType(kind, [kind] * 3)
    function = cgutils.get_or_insert_function(builder.module, kinds, f"llvm.fma.{name}")  # type: ignore[no-untyped-call]
    return builder.call(function, terms)


@intrinsic
def fma(typingctx: Any, a: Any, b: Any, c: Any) -> Any:  # noqa: ARG001 - numba calls it so
    """a * b + c, rounded once."""

    def generated(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind = context.get_value_type(signature.return_type)
        return _multiplied_and_added(builder, kind, f"f{signature.return_type.bitwidth}", list(given))

    return c(c, c, c), generated


class _Tile:
    """The instructions for one tile: some rows of sums stay in registers while the inner index runs."""

    def __init__(self, context: Any, builder: Any, signature: Any, given: Any, rows: int) -> None:
        self.builder, self.rows = builder, rows
        self.left, self.left_first, self.left_step, self.panel, self.depth, self.out, self.first, self.step = given
        real = signature.args[0].dtype
        self.bytes, self.lanes = real.bitwidth // 8, 8 * _BYTES // real.bitwidth
        self.vector = ir.VectorType(context.get_value_type(real), self.lanes)
        self.name = f"v{self.lanes}f{real.bitwidth}"
        left, panel, out = (context.make_array(signature.args[n])(context, builder, given[n]).data for n in (0, 3, 5))
        self.sums = [cgutils.alloca_once(builder, self.vector) for _ in range(rows)]  # type: ignore[no-untyped-call]
        self._take(out)
        with cgutils.for_range(builder, self.depth) as loop:
            self._add(left, panel, loop.index)
        self._put(out)

    def _take(self, out: Any) -> None:
        for row, place in enumerate(self.sums):
            self.builder.store(self._load(self._at(out, self._index(self.first, self.step, row))), place)

    def _put(self, out: Any) -> None:
        for row, place in enumerate(self.sums):
            put = self.builder.store(self.builder.load(place), self._at(out, self._index(self.first, self.step, row)))
            put.align = self.bytes

    def _add(self, left: Any, panel: Any, inner: Any) -> None:
        build = self.builder
        right = self._load(self._at(panel, build.mul(inner, ir.Constant(inner.type, self.lanes))))
        for row, place in enumerate(self.sums):
            index = build.add(self._index(self.left_first, self.left_step, row), inner)
            factor = self._everywhere(build.load(build.gep(left, [index])))
            terms = [factor, right, build.load(place)]
            build.store(_multiplied_and_added(build, self.vector, self.name, terms), place)

    def _everywhere(self, number: Any) -> Any:
        unset, word = ir.Constant(self.vector, ir.Undefined), ir.IntType(32)
        one = self.builder.insert_element(unset, number, ir.Constant(word, 0))
        return self.builder.shuffle_vector(one, unset, ir.Constant(ir.VectorType(word, self.lanes), None))

    def _index(self, first: Any, step: Any, row: int) -> Any:
        return self.builder.add(first, self.builder.mul(step, ir.Constant(step.type, row)))

    def _at(self, data: Any, index: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(data, [index]), self.vector.as_pointer())

    def _load(self, place: Any) -> Any:
        loaded = self.builder.load(place)
        loaded.align = self.bytes
        return loaded


def _tile_of(rows: int) -> Any:
    @intrinsic
    def tile(typingctx, left, first, step, panel, depth, out, out_first, out_step):  # type: ignore[no-untyped-def]  # noqa: ARG001
        def generated(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            _Tile(context, builder, signature, given, rows)
            return context.get_dummy_value()

        whole = types.intp
        return types.void(left, whole, whole, panel, whole, out, whole, whole), generated

    return tile


_tile, _one_row = _tile_of(_ROWS), _tile_of(1)


@njit(cache=True, error_model="numpy")
def _pack(right: Array, transposed: bool, inner: tuple[int, int], columns: tuple[int, int], panel: Array, lanes: int) -> None:
    """A few columns of the right matrix side by side, with nothing where it ends."""
    (low, high), (left, end) = inner, columns
    for k in range(low, high):
        row = panel[(k - low) * lanes : (k - low + 1) * lanes]
        if transposed:
            for j in range(left, end):
                row[j - left] = right[j, k]
        else:
            part = right[k, left:end]
            for j in range(len(part)):
                row[j] = part[j]
        for j in range(end - left, lanes):
            row[j] = 0


@njit(cache=True, error_model="numpy")
def _add_tile(left: Array, corner: tuple[int, int], depth: int, panel: Array, out: Array, column: int, edge: Array) -> None:
    """Adds to one tile of `out` what one panel gives; the last columns go by way of `edge`, which is as wide as a tile."""
    (i, low), inner, width, lanes = corner, left.shape[1], out.shape[1], edge.shape[1]
    rows, wide = (_ROWS if i + _ROWS <= left.shape[0] else 1), min(lanes, width - column)
    place, first, step = out, i * width + column, width
    if wide < lanes:
        edge[:rows, :wide] = out[i : i + rows, column : column + wide]
        place, first, step = edge, 0, lanes
    if rows == _ROWS:
        _tile(left, i * inner + low, inner, panel, depth, place, first, step)
    else:
        _one_row(left, i * inner + low, inner, panel, depth, place, first, step)
    if wide < lanes:
        out[i : i + rows, column : column + wide] = edge[:rows, :wide]


@njit(cache=True, error_model="numpy")
def _add_product(left: Array, right: Array, transposed: bool, out: Array) -> None:
    (count, inner), width = left.shape, out.shape[1]
    lanes = _BYTES // out.itemsize
    panels, edge = np.empty((_ABREAST, _DEPTH * lanes), out.dtype), np.zeros((_ROWS, lanes), out.dtype)
    whole = count - count % _ROWS
    for low in range(0, inner, _DEPTH):
        high = min(inner, low + _DEPTH)
        for start in range(0, width, _ABREAST * lanes):
            end = min(width, start + _ABREAST * lanes)
            for n, column in enumerate(range(start, end, lanes)):
                _pack(right, transposed, (low, high), (column, min(width, column + lanes)), panels[n], lanes)
            for turn in range(whole // _ROWS + count - whole):
                i = turn * _ROWS if turn * _ROWS < whole else whole + turn - whole // _ROWS
                for n, column in enumerate(range(start, end, lanes)):
                    _add_tile(left, (i, low), high - low, panels[n], out, column, edge)


def add_product(left: Array, right: Array, out: Array) -> None:
    """Adds left @ right to `out`, which is dense and of the left one's type; the right one may be narrower."""
    _add_product(np.ascontiguousarray(left), np.ascontiguousarray(right), False, out)


def add_product_transposed(left: Array, right: Array, out: Array) -> None:
    """Adds left @ right.T to `out`."""
    _add_product(np.ascontiguousarray(left), np.ascontiguousarray(right), True, out)
