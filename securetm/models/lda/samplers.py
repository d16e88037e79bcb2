"""Draws of one outcome: from alias tables in constant time, and by running sums over all outcomes in eight lanes.

A cell of an alias table (Walker 1977, built as in Vose 1991) is one double. Its upper bits are the probability of the cell's
own outcome. Its lower 16 bits are the number of the other outcome, which has the rest. So a draw reads one place in memory, and
probabilities are exact to 36 bits.

The lanes are written in LLVM's vector instructions, because compilers do not vectorise such running sums. They mean the same on
every machine and run in the same order, so every machine draws alike.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from securetm.compiled import intrinsic, njit
from securetm.contracts import Array
from securetm.extras import later
from securetm.models.batches import on_ranges
from securetm.models.lda.counting import CountTable

ir, types, cgutils = later("llvmlite.ir"), later("numba.core.types"), later("numba.core.cgutils")

OTHER = np.uint64(0xFFFF)  # the bits of a cell that hold the number of its other outcome


class Proposals(NamedTuple):
    """The alias tables of one round, and the same memory as whole numbers: of each word's topics, and of alpha."""

    of_words: Array  # by (count + eta) x scale
    word_bits: Array
    of_alpha: Array
    alpha_bits: Array
    scale: Array  # of each topic: one over its smoothed total


def proposals_of(table: CountTable, threads: int) -> Proposals:
    scale = 1.0 / (table.totals + table.words * table.eta)
    of_words, sums = np.empty((table.words, table.topics)), np.empty(table.words)
    bits = of_words.view(np.uint64)
    on_ranges(np.arange(table.words + 1), threads, build, table.by_word, scale, bits, sums)
    of_alpha = tables_of(table.alpha[None])[0][0]
    return Proposals(of_words, bits, of_alpha, of_alpha.view(np.uint64), scale)


def tables_of(weights: Array) -> tuple[Array, Array]:
    """One table per row of weights, which are not negative and not all zero, and each row's sum."""
    tables, sums = np.empty(weights.shape), np.empty(len(weights))
    build(0, len(weights), weights, np.ones(weights.shape[1]), tables.view(np.uint64), sums)
    return tables, sums


@njit(cache=True, nogil=True)
def build(first: int, last: int, weights: Array, scale: Array, tables: Array, sums: Array) -> None:
    """Tables of rows `first` to `last` of weights x scale into `tables` (the doubles' bits), and the rows' sums."""
    k = weights.shape[1]
    bits, cut = np.empty(1, dtype=np.float64), np.empty(k)
    whole = bits.view(np.uint64)
    few, many, other = np.empty(k, dtype=np.int64), np.empty(k, dtype=np.int64), np.empty(k, dtype=np.int64)
    for row in range(first, last):
        sums[row] = 0.0
        for z in range(k):
            cut[z] = weights[row, z] * scale[z]
            sums[row] += cut[z]
        _share_out(cut, k / sums[row], other, few, many)
        for z in range(k):
            bits[0] = cut[z]
            tables[row, z] = (whole[0] & ~OTHER) | np.uint64(other[z])


@njit(cache=True, nogil=True, inline="always")
def _share_out(cut: Array, scale: float, other: Array, few: Array, many: Array) -> None:
    """Fills cells below 1 from cells above 1, until no cell is above 1; `other` says from which."""
    below, above = 0, 0
    for z in range(len(cut)):
        cut[z] *= scale
        other[z] = z
        if cut[z] < 1.0:
            few[below] = z
            below += 1
        else:
            many[above] = z
            above += 1
    while below > 0 and above > 0:
        below -= 1
        giver = many[above - 1]
        other[few[below]] = giver
        cut[giver] = (cut[giver] + cut[few[below]]) - 1.0
        if cut[giver] < 1.0:
            above -= 1
            few[below] = giver
            below += 1
    for left in range(below):  # rounding left these
        cut[few[left]] = 1.0
    for left in range(above):
        cut[many[left]] = 1.0


@njit(cache=True, nogil=True, inline="always")
def draw(table: Array, bits: Array, chance: float) -> int:
    """An outcome of one row's table for a uniform number; `bits` is the same memory as whole numbers."""
    at = chance * len(table)
    cell = min(int(at), len(table) - 1)
    if at - cell < table[cell]:
        return cell
    return np.int64(bits[cell] & OTHER)  # type: ignore[return-value]  # numba would not unite it with an unsigned number


LANES = 8


@cache
def _kinds() -> tuple[Any, Any, Any]:
    """Of instructions: one number, a whole one, and all lanes of a vector."""
    return ir.FloatType(), ir.IntType(64), ir.VectorType(ir.FloatType(), LANES)


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
    ended = builder.zext(builder.ctpop(_not_above(builder, running, aim)), _kinds()[1])
    lane = _at_most(builder, ended, _whole(LANES - 1))
    left = builder.fsub(aim, builder.extract_element(_moved(builder, running, 1), lane))
    return builder.add(builder.mul(_blocks_up_to(builder, sums, blocks, lane, left), _whole(LANES)), lane)


def _add_up(builder: Any, factors: Any, sums: Any, blocks: Any, own: Any, given: Any) -> Any:
    """Writes each lane's running sum after every block to `sums`. Returns the last of them."""
    numbers = ir.Constant(ir.VectorType(ir.IntType(32), LANES), list(range(LANES)))
    weight, more, share = factors
    more, own, given = (_everywhere(builder, value) for value in (more, own, given))
    total = _variable(builder, ir.Constant(_kinds()[2], None))
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
    return builder.shuffle_vector(vector, ir.Constant(_kinds()[2], None), order)


def _blocks_up_to(builder: Any, sums: Any, blocks: Any, lane: Any, left: Any) -> Any:
    """The number of one lane's running sums that are at most `left`. All lanes are compared: gathering one lane is slower."""
    count = _variable(builder, _whole(0))
    with cgutils.for_range(builder, blocks) as loop:
        block = builder.load(_at(builder, sums, builder.mul(loop.index, _whole(LANES))), align=4)
        ended = builder.lshr(builder.zext(_not_above(builder, block, left), _kinds()[1]), lane)
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
    return cgutils.alloca_once_value(builder, value)


def _at(builder: Any, numbers: Any, place: Any) -> Any:
    return builder.bitcast(builder.gep(numbers, [place]), _kinds()[2].as_pointer())


def _at_most(builder: Any, value: Any, limit: Any) -> Any:
    return builder.select(builder.icmp_signed("<", value, limit), value, limit)


def _whole(value: int) -> Any:
    return ir.Constant(_kinds()[1], value)
