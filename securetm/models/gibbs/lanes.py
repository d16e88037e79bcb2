"""One draw in proportion to the products of two rows of single precision, by vectors of eight lanes and without branches.

It is written in LLVM's vector instructions, because compilers do not vectorise such running sums. They mean the same on every
machine and run in the same order, so every machine draws alike. It knows nothing of topics.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]  # it ships no types
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from securetm.contracts import Array

LANES = 8
_NUMBER, _WHOLE = ir.FloatType(), ir.IntType(64)
_VECTOR = ir.VectorType(_NUMBER, LANES)


@intrinsic
def choose(typing: Any, weight: Any, more: Any, share: Any, sums: Any, blocks: Any, own: Any, product: Any, chance: Any) -> Any:
    """The place of a draw in proportion to (weight + more) x share, for a uniform number `chance`.

    Rows hold `blocks` times eight numbers, and `sums` is a buffer for as many. At the place `own` the product is the given one:
    a store to the row would delay the next wide load. Rounding may lead to the last place of the rows, so a caller who pads
    rows with zeros takes the smaller of the result and its own last place.
    """
    del typing
    return types.int64(weight, more, share, sums, blocks, own, product, chance), _generate


@njit(inline="always")
def lanes_for(size: int) -> Array:
    """A row of zeros for that many numbers in whole blocks, each aligned to its size."""
    room = -(-size // LANES) * LANES
    found = np.zeros(room + LANES, dtype=np.float32)
    skipped = (-found.ctypes.data % (4 * LANES)) // 4
    return found[skipped : skipped + room]


def _generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    kinds = signature.args
    weight, share, sums = (context.make_array(kinds[n])(context, builder, arguments[n]).data for n in (0, 2, 3))
    blocks = context.cast(builder, arguments[4], kinds[4], types.int64)
    own = context.cast(builder, arguments[5], kinds[5], types.int32)
    more, product, chance = (context.cast(builder, arguments[n], kinds[n], types.float32) for n in (1, 6, 7))
    running = _add_up(builder, (weight, more, share), sums, blocks, own, product)
    for step in (1, 2, 4):  # running sums over the lanes
        running = builder.fadd(running, _moved(builder, running, step))
    aim = builder.fmul(chance, builder.extract_element(running, _whole(LANES - 1)))
    ended = builder.zext(builder.ctpop(_not_above(builder, running, aim)), _WHOLE)
    lane = _at_most(builder, ended, _whole(LANES - 1))
    left = builder.fsub(aim, builder.extract_element(_moved(builder, running, 1), lane))
    return builder.add(builder.mul(_blocks_up_to(builder, sums, blocks, lane, left), _whole(LANES)), lane)


def _add_up(builder: Any, factors: Any, sums: Any, blocks: Any, own: Any, given: Any) -> Any:
    """Writes each lane's running sum after every block to `sums`. Returns the last of them."""
    numbers = ir.Constant(ir.VectorType(ir.IntType(32), LANES), list(range(LANES)))
    weight, more, share = factors
    more, own, given = (_everywhere(builder, value) for value in (more, own, given))
    total = _variable(builder, ir.Constant(_VECTOR, None))
    with cgutils.for_range(builder, blocks) as loop:
        at = builder.mul(loop.index, _whole(LANES))
        whole = builder.fadd(builder.load(_at(builder, weight, at), align=4), more)
        product = builder.fmul(whole, builder.load(_at(builder, share, at), align=4))
        places = builder.add(numbers, _everywhere(builder, builder.trunc(at, ir.IntType(32))))
        product = builder.select(builder.icmp_unsigned("==", places, own), given, product)
        grown = builder.fadd(builder.load(total), product)
        builder.store(grown, total)
        builder.store(grown, _at(builder, sums, at), align=4)
    return builder.load(total)


def _moved(builder: Any, vector: Any, step: int) -> Any:
    """Shifts every lane's value up by that many lanes; zeros come in below."""
    mask = [LANES] * step + list(range(LANES - step))
    order = ir.Constant(ir.VectorType(ir.IntType(32), LANES), mask)
    return builder.shuffle_vector(vector, ir.Constant(_VECTOR, None), order)


def _blocks_up_to(builder: Any, sums: Any, blocks: Any, lane: Any, left: Any) -> Any:
    """The number of one lane's running sums that are at most `left`. All lanes are compared: gathering one lane is slower."""
    count = _variable(builder, _whole(0))
    with cgutils.for_range(builder, blocks) as loop:
        block = builder.load(_at(builder, sums, builder.mul(loop.index, _whole(LANES))), align=4)
        ended = builder.lshr(builder.zext(_not_above(builder, block, left), _WHOLE), lane)
        builder.store(builder.add(builder.load(count), builder.and_(ended, _whole(1))), count)
    return _at_most(builder, builder.load(count), builder.sub(blocks, _whole(1)))


def _not_above(builder: Any, vector: Any, limit: Any) -> Any:
    """One bit per lane: whether its value is at most the limit."""
    return builder.bitcast(builder.fcmp_ordered("<=", vector, _everywhere(builder, limit)), ir.IntType(LANES))


def _everywhere(builder: Any, value: Any) -> Any:
    """A vector of the same number in all lanes."""
    one = builder.insert_element(ir.Constant(ir.VectorType(value.type, LANES), None), value, _whole(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), LANES), None))


def _variable(builder: Any, value: Any) -> Any:
    return cgutils.alloca_once_value(builder, value)  # type: ignore[no-untyped-call]


def _at(builder: Any, numbers: Any, place: Any) -> Any:
    return builder.bitcast(builder.gep(numbers, [place]), _VECTOR.as_pointer())


def _at_most(builder: Any, value: Any, limit: Any) -> Any:
    return builder.select(builder.icmp_signed("<", value, limit), value, limit)


def _whole(value: int) -> Any:
    return ir.Constant(_WHOLE, value)
