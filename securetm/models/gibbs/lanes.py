"""One draw from products of two rows of single precision, eight side by side, without a branch that chance decides.

It is written as vector instructions of LLVM's own, since compilers leave such sums in line; they mean the same on every machine
and are done in the same order, so that all draw alike. It knows nothing of topics.
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

    Rows hold `blocks` times eight numbers, and `sums` is room for as many. At the place `own` the product is the one given, so
    that nobody has to write what the next wide load would wait for. Rounding may lead to the last place of all, so whoever
    pads rows with zeros takes the least of it and their own last place.
    """
    del typing
    return types.int64(weight, more, share, sums, blocks, own, product, chance), _generate


@njit(inline="always")
def lanes_for(size: int) -> Array:
    """A row of zeros with room for that many numbers in whole blocks, which begin where lines of memory do."""
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
    running = _scan(builder, _add_up(builder, (weight, more, share), sums, blocks, own, product))
    aim = builder.fmul(chance, builder.extract_element(running, _whole(LANES - 1)))
    lane = _first_above(builder, running, aim)
    left = builder.fsub(aim, builder.extract_element(_moved(builder, running, 1), lane))
    return builder.add(builder.mul(_blocks_up_to(builder, sums, blocks, lane, left), _whole(LANES)), lane)


def _add_up(builder: Any, factors: Any, sums: Any, blocks: Any, own: Any, given: Any) -> Any:
    """Each lane's running sum after every block, into `sums`; the last of them."""
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


def _scan(builder: Any, vector: Any) -> Any:
    """Running sums over the lanes, in three steps."""
    for step in (1, 2, 4):
        vector = builder.fadd(vector, _moved(builder, vector, step))
    return vector


def _moved(builder: Any, vector: Any, step: int) -> Any:
    """Every lane's value that many lanes up; zeros come in below."""
    mask = [LANES] * step + list(range(LANES - step))
    order = ir.Constant(ir.VectorType(ir.IntType(32), LANES), mask)
    return builder.shuffle_vector(vector, ir.Constant(_VECTOR, None), order)


def _first_above(builder: Any, running: Any, aim: Any) -> Any:
    """How many lanes end at or below the aim: the next one holds it."""
    ended = builder.zext(builder.ctpop(_not_above(builder, running, aim)), _WHOLE)
    return _at_most(builder, ended, _whole(LANES - 1))


def _blocks_up_to(builder: Any, sums: Any, blocks: Any, lane: Any, left: Any) -> Any:
    """How many of one lane's running sums are at or below what is left. All lanes are looked at: to gather one is slower."""
    count = _variable(builder, _whole(0))
    with cgutils.for_range(builder, blocks) as loop:
        block = builder.load(_at(builder, sums, builder.mul(loop.index, _whole(LANES))), align=4)
        ended = builder.lshr(builder.zext(_not_above(builder, block, left), _WHOLE), lane)
        builder.store(builder.add(builder.load(count), builder.and_(ended, _whole(1))), count)
    return _at_most(builder, builder.load(count), builder.sub(blocks, _whole(1)))


def _not_above(builder: Any, vector: Any, limit: Any) -> Any:
    """One bit per lane."""
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
