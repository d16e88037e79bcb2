"""Sums, products and functions with the same bits wherever a row stands, on every processor and with any number of threads.

A library chooses the order of its sums by the number of rows, the processor and the number of threads, and computes the numbers
that fill a vector register with other code than those left over at an array's end. Here every number is one chain of
operations, each rounded as IEEE 754 says.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from securetm.compiled import intrinsic, njit, overload
from securetm.contracts import Array
from securetm.extras import later

ir, types, cgutils = later("llvmlite.ir"), later("numba.core.types"), later("numba.core.cgutils")


@njit(cache=True, nogil=True, inline="always")
def plus(whole: float, lost: float, more: float) -> tuple[float, float]:
    """The next sum, and what rounding added to it: a clip relies on lengths, however many words a document has."""
    wanted = more - lost
    found = whole + wanted
    return found, (found - whole) - wanted


@njit(cache=True, nogil=True, inline="always")
def copy_row(row: Array, to: Array) -> None:
    """Cell by cell: where rows are assigned, the sentence about unequal lengths takes seconds to compile."""
    for j in range(len(row)):
        to[j] = row[j]


LANES = 256  # sums side by side over a long row: a compiler does not vectorise a single sum


@njit(cache=True, error_model="numpy")
def folded(lanes: Array) -> Any:
    """The sum of the lanes, by adding one half to the other; their number is a power of two."""
    width = len(lanes) // 2
    while width > 0:
        for j in range(width):
            lanes[j] += lanes[j + width]
        width //= 2
    return lanes[0]


@njit(cache=True, error_model="numpy")
def row_sum(row: Array, lanes: Array) -> Any:
    lanes[:] = 0
    for first in range(0, len(row), len(lanes)):
        part = row[first : first + len(lanes)]
        for j in range(len(part)):
            lanes[j] += part[j]
    return folded(lanes)


@njit(cache=True, error_model="numpy")
def sum_of_squares(row: Array, level: Any, lanes: Array) -> Any:
    """The sum of (row - level)^2."""
    lanes[:] = 0
    for first in range(0, len(row), len(lanes)):
        part = row[first : first + len(lanes)]
        for j in range(len(part)):
            lanes[j] += (part[j] - level) * (part[j] - level)
    return folded(lanes)


@njit(cache=True, error_model="numpy")
def sum_of_products(one: Array, two: Array, level: Any, lanes: Array) -> Any:
    """The sum of one * (two - level)."""
    lanes[:] = 0
    for first in range(0, len(one), len(lanes)):
        left, right = one[first : first + len(lanes)], two[first : first + len(lanes)]
        for j in range(len(left)):
            lanes[j] += left[j] * (right[j] - level)
    return folded(lanes)


@njit(cache=True, error_model="numpy")
def highest(row: Array, lanes: Array) -> Any:
    """The largest value. Of a row with a NaN it may be any value, but then the row's mean is NaN."""
    lanes[:] = row[0]
    for first in range(0, len(row), len(lanes)):
        part = row[first : first + len(lanes)]
        for j in range(len(part)):
            lanes[j] = part[j] if part[j] > lanes[j] else lanes[j]
    highest = lanes[0]
    for j in range(len(lanes)):
        highest = lanes[j] if lanes[j] > highest else highest
    return highest


_LOG2_E = 1.4426950408889634
_HIGH, _LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # log 2 as a sum; the first part ends with zero bits
_ROUNDER = 6755399441055744.0  # 1.5 x 2^52: adding it rounds a number to a whole one
_ROUNDER32 = np.float32(12582912.0)  # 1.5 x 2^23
_TAYLOR = tuple(1.0 / math.factorial(n) for n in range(13, -1, -1))


def _exp64(x: Any) -> Any:
    """exp as 2^n times a Taylor polynomial on -log(2) / 2 to log(2) / 2."""
    x = -708.0 if x < -708.0 else x
    x = 709.0 if x > 709.0 else x
    shifted = x * _LOG2_E + _ROUNDER
    n = shifted - _ROUNDER
    r = (x - n * _HIGH) - n * _LOW
    p = _TAYLOR[0]
    for coefficient in _TAYLOR[1:]:
        p = p * r + coefficient
    power = (np.float64(shifted).view(np.int64) - np.float64(_ROUNDER).view(np.int64) + 1023) << 52
    return p * np.int64(power).view(np.float64)


def _exp32(x: Any) -> Any:
    """exp of a float32 to one unit in the last place (Cephes' polynomial)."""
    x = np.float32(-87.0) if x < np.float32(-87.0) else x
    x = np.float32(88.0) if x > np.float32(88.0) else x
    shifted = x * np.float32(_LOG2_E) + _ROUNDER32
    n = shifted - _ROUNDER32
    r = x - n * np.float32(0.693359375) - n * np.float32(-2.12194440e-4)
    p = np.float32(1.9875691500e-4)
    p = p * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    y = p * r * r + r + np.float32(1)
    power = (np.float32(shifted).view(np.int32) - np.float32(_ROUNDER32).view(np.int32) + np.int32(127)) << np.int32(23)
    return y * np.int32(power).view(np.float32)


def _exp_of(x: Any) -> Any:
    return _exp32 if x == types.float32 else _exp64


@overload(_exp_of, jit_options={"error_model": "numpy"})
def exp(x: Any) -> Any:
    """exp in the precision of its argument; only compiled code can call it."""
    raise NotImplementedError


@njit(cache=True, error_model="numpy")
def _log_ratio(s: float) -> float:
    """log((1 + s) / (1 - s)) for s of at most a third."""
    square = s * s
    p = 2.0 / 35.0
    p = p * square + 2.0 / 33.0
    p = p * square + 2.0 / 31.0
    p = p * square + 2.0 / 29.0
    p = p * square + 2.0 / 27.0
    p = p * square + 2.0 / 25.0
    p = p * square + 2.0 / 23.0
    p = p * square + 2.0 / 21.0
    p = p * square + 2.0 / 19.0
    p = p * square + 2.0 / 17.0
    p = p * square + 2.0 / 15.0
    p = p * square + 2.0 / 13.0
    p = p * square + 2.0 / 11.0
    p = p * square + 2.0 / 9.0
    p = p * square + 2.0 / 7.0
    p = p * square + 2.0 / 5.0
    p = p * square + 2.0 / 3.0
    p = p * square + 2.0
    return s * p


@njit(cache=True, error_model="numpy")
def log1p_of_share(e: float) -> float:
    """log(1 + e) for e from 0 to 1."""
    return _log_ratio(e / (2.0 + e))


@njit(cache=True, error_model="numpy")
def log(x: float) -> float:
    """The logarithm of an ordinary number above 0."""
    bits = np.float64(x).view(np.int64)
    n = (bits >> 52) - 1023
    m = np.int64((bits & 0xFFFFFFFFFFFFF) | (1023 << 52)).view(np.float64)
    if m > 1.4142135623730951:
        m, n = m * 0.5, n + 1
    return n * 0.6931471805599453 + _log_ratio((m - 1.0) / (m + 1.0))


_ROWS = 6  # of the left matrix in one tile: the registers of every processor hold so many sums
_BYTES = 64  # of one row of a tile; the compiler splits it where registers are shorter
_DEPTH = 512  # steps of the inner index before the next tile begins, so that panels stay in a fast cache
_SHALLOW = 64  # the same where rows are read in place, so that the address cache holds all their pages
_ALIGNED = 4  # bytes of alignment that loads and stores may assume
_ABREAST = 8  # panels side by side, so that sums are read and written along their rows
_START: Any = np.intp(0)  # a plain 0 is a type of its own to the compiler, which then makes each function once more for it


@cache
def _has_fma() -> bool:
    """Whether the processor rounds a * b + c once; without it numbers are rounded twice, the same in all rows."""
    from llvmlite.binding import get_host_cpu_features, get_process_triple  # type: ignore[import-untyped]

    x86 = get_process_triple().split("-")[0] in ("x86_64", "i386", "i686")
    return not x86 or bool(get_host_cpu_features().get("fma", False))


def _multiplied_and_added(builder: Any, kind: Any, name: str, terms: list[Any]) -> Any:
    if not _has_fma():
        return builder.fadd(builder.fmul(terms[0], terms[1]), terms[2])
    kinds = ir.FunctionType(kind, [kind] * 3)
    function = cgutils.get_or_insert_function(builder.module, kinds, f"llvm.fma.{name}")
    return builder.call(function, terms)


@intrinsic
def fma(typingctx: Any, a: Any, b: Any, c: Any) -> Any:  # noqa: ARG001 - numba calls it so
    """a * b + c, rounded once."""

    def generated(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind = context.get_value_type(signature.return_type)
        return _multiplied_and_added(builder, kind, f"f{signature.return_type.bitwidth}", list(given))

    return c(c, c, c), generated


class _Tile:
    """The instructions for one tile: some rows of sums stay in registers while the inner index runs.

    Each matrix comes with the place of its first number and the step between rows. The right one may have a narrower type.
    """

    def __init__(self, context: Any, builder: Any, signature: Any, given: Any, rows: int) -> None:
        self.builder, self.rows = builder, rows
        kinds = [signature.args[n].dtype for n in (0, 3, 7)]
        self.lanes = 8 * _BYTES // kinds[2].bitwidth
        self.left_type, self.right_type, self.vector = (
            ir.VectorType(context.get_value_type(kind), self.lanes) for kind in kinds
        )
        self.name = f"v{self.lanes}f{kinds[2].bitwidth}"
        self.data = [context.make_array(signature.args[n])(context, builder, given[n]).data for n in (0, 3, 7)]
        self.places = [given[n : n + 2] for n in (1, 4, 8)]
        self.sums = [cgutils.alloca_once(builder, self.vector) for _ in range(rows)]
        for row, place in enumerate(self.sums):
            builder.store(self._load(self._at(2, row), self.vector), place)
        with cgutils.for_range(builder, given[6]) as loop:
            self._add(loop.index)
        for row, place in enumerate(self.sums):
            put = builder.store(builder.load(place), builder.bitcast(self._at(2, row), self.vector.as_pointer()))
            put.align = _ALIGNED

    def _add(self, inner: Any) -> None:
        build = self.builder
        right = self._load(self._at(1, inner), self.right_type)
        if self.right_type != self.vector:
            right = build.fpext(right, self.vector)
        for row, place in enumerate(self.sums):
            factor = self._everywhere(build.load(build.gep(self._at(0, row), [inner])))
            build.store(_multiplied_and_added(build, self.vector, self.name, [factor, right, build.load(place)]), place)

    def _everywhere(self, number: Any) -> Any:
        unset, word = ir.Constant(self.vector, ir.Undefined), ir.IntType(32)
        one = self.builder.insert_element(unset, number, ir.Constant(word, 0))
        return self.builder.shuffle_vector(one, unset, ir.Constant(ir.VectorType(word, self.lanes), None))

    def _at(self, matrix: int, row: Any) -> Any:
        """The address where this row of a matrix begins in the tile."""
        first, step = self.places[matrix]
        row = ir.Constant(step.type, row) if isinstance(row, int) else row
        return self.builder.gep(self.data[matrix], [self.builder.add(first, self.builder.mul(step, row))])

    def _load(self, place: Any, vector: Any) -> Any:
        loaded = self.builder.load(self.builder.bitcast(place, vector.as_pointer()))
        loaded.align = _ALIGNED
        return loaded


def _tile_of(rows: int) -> Any:
    @intrinsic
    def tile(typingctx, left, first, step, right, begin, pace, depth, out, place, stride):  # type: ignore[no-untyped-def]  # noqa: ARG001
        def generated(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            _Tile(context, builder, signature, given, rows)
            return context.get_dummy_value()

        whole = types.intp
        return types.void(left, whole, whole, right, whole, whole, whole, out, whole, whole), generated

    return tile


_tile, _few_rows, _one_row = _tile_of(_ROWS), _tile_of(2), _tile_of(1)


@njit(cache=True, error_model="numpy")
def _add_tile(
    left: Array, corner: tuple[int, int], depth: int, right: Array, begin: int, pace: int, out: Array, place: int, stride: int
) -> int:
    """Adds to one tile of `out`. Returns its number of rows."""
    (i, low), inner = corner, left.shape[1]
    first = i * inner + low
    if i + _ROWS <= left.shape[0]:
        _tile(left, first, inner, right, begin, pace, depth, out, place, stride)
        return _ROWS
    if i + 2 <= left.shape[0]:
        _few_rows(left, first, inner, right, begin, pace, depth, out, place, stride)
        return 2
    _one_row(left, first, inner, right, begin, pace, depth, out, place, stride)
    return 1


@njit(cache=True, error_model="numpy")
def _pack(right: Array, transposed: bool, inner: tuple[int, int], columns: tuple[int, int], panel: Array, lanes: int) -> None:
    """Copies a few columns of the right matrix to a panel, with zeros beyond its end."""
    (low, high), (left, end) = inner, columns
    for k in range(low, high):
        place = (k - low) * lanes
        for j in range(left, end):
            panel[place + j - left] = right[j, k] if transposed else right[k, j]
        for j in range(place + end - left, place + lanes):
            panel[j] = 0


@njit(cache=True, error_model="numpy")
def _add_packed(left: Array, corner: tuple[int, int], depth: int, panel: Array, out: Array, column: int, edge: Array) -> int:
    """Adds the product with one panel to a tile; the last columns go through `edge`, which is as wide as a tile."""
    (i, _), width, lanes = corner, out.shape[1], edge.shape[1]
    wide = min(lanes, width - column)
    if wide == lanes:
        return _add_tile(left, corner, depth, panel, _START, lanes, out, i * width + column, width)
    rows = min(_ROWS, left.shape[0] - i)
    for row in range(rows):  # cell by cell: to assign slices takes a second to compile
        for j in range(wide):
            edge[row, j] = out[i + row, column + j]
    rows = _add_tile(left, corner, depth, panel, _START, lanes, edge, _START, lanes)
    for row in range(rows):
        for j in range(wide):
            out[i + row, column + j] = edge[row, j]
    return rows


@njit(cache=True, error_model="numpy")
def _add_packing(left: Array, right: Array, transposed: bool, first: int, out: Array) -> None:
    """Adds the columns from `first` on, through panels."""
    (count, inner), width = left.shape, out.shape[1]
    lanes = _BYTES // out.itemsize
    panels, edge = np.empty((_ABREAST, _DEPTH * lanes), out.dtype), np.zeros((_ROWS, lanes), out.dtype)
    for low in range(0, inner, _DEPTH):
        high = min(inner, low + _DEPTH)
        for start in range(first, width, _ABREAST * lanes):
            columns = range(start, min(width, start + _ABREAST * lanes), lanes)
            for n, column in enumerate(columns):
                _pack(right, transposed, (low, high), (column, min(width, column + lanes)), panels[n], lanes)
            i = _START
            while i < count:
                rows = 0
                for n, column in enumerate(columns):
                    rows = _add_packed(left, (i, low), high - low, panels[n], out, column, edge)
                i += rows


@njit(cache=True, error_model="numpy")
def _add_in_place(left: Array, right: Array, whole: int, out: Array) -> None:
    """Adds the first `whole` columns, read in place."""
    (count, inner), width = left.shape, out.shape[1]
    lanes = _BYTES // out.itemsize
    for low in range(0, inner, _SHALLOW):
        depth = min(inner, low + _SHALLOW) - low
        for start in range(0, whole, _ABREAST * lanes):
            end, i = min(whole, start + _ABREAST * lanes), _START
            while i < count:
                rows = 0
                for column in range(start, end, lanes):
                    place, begin = i * width + column, low * width + column
                    rows = _add_tile(left, (i, low), depth, right, begin, width, out, place, width)
                i += rows


def add_product(left: Array, right: Array, out: Array) -> None:
    """Adds left @ right to `out`, which is dense and has the left one's type; the right one's type may be narrower."""
    left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)
    lanes = _BYTES // out.itemsize
    whole = right.shape[1] - right.shape[1] % lanes
    _add_in_place(left, right, whole, out)
    if whole < right.shape[1]:
        _add_packing(left, right, False, whole, out)


def add_product_transposed(left: Array, right: Array, out: Array) -> None:
    """Adds left @ right.T to `out`."""
    _add_packing(np.ascontiguousarray(left), np.ascontiguousarray(right), True, 0, out)


def product(left: Array, right: Array) -> Array:
    """left @ right."""
    out = np.zeros((len(left), right.shape[1]), left.dtype)
    add_product(left, right, out)
    return out


def product_transposed(left: Array, right: Array) -> Array:
    """left @ right.T."""
    out = np.zeros((len(left), len(right)), left.dtype)
    add_product_transposed(left, right, out)
    return out


@njit(cache=True, nogil=True)
def overlaps(topics: Array) -> Array:
    """The products of every topic with every topic (topics x words)."""
    k, width = topics.shape
    out = np.empty((k, k))
    for i in range(k):
        for j in range(i, k):
            whole = 0.0
            for v in range(width):
                whole += topics[i, v] * topics[j, v]
            out[i, j], out[j, i] = whole, whole
    return out
