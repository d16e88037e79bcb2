"""Why a mechanism cannot protect a question: all of it is found out before any document is read. It checks nothing itself."""

from __future__ import annotations

from dataclasses import dataclass

from securetm.errors.tree import Unsound


@dataclass(eq=False)
class NoiseWithoutClip(Unsound):
    """{mechanism} has no bound to measure its noise by: nothing limits what one {unit} adds to the sum"""

    mechanism: str
    unit: str
    hint = "in the profile, put a [[mechanism]] that clips real rows or bounds counts before the one that adds noise"


@dataclass(eq=False)
class NoiseNeedsIntegers(Unsound):
    """{mechanism} adds whole numbers, and this question's vector is not on a grid of them"""

    mechanism: str
    hint = "in the profile, put the [[mechanism]] fixed_point between the clip and the noise"


@dataclass(eq=False)
class NoiseNeedsSum(Unsound):
    """{mechanism} protects a sum, and this question needs every party's own vector"""

    mechanism: str
    hint = "ask a question whose answer is a sum, or let each party add whole noise of its own"


@dataclass(eq=False)
class NoiseOnNoise(Unsound):
    """{mechanism} meets a vector that already carries shares of noise, so nobody could say what both together spend"""

    mechanism: str
    hint = "in the profile, keep one mechanism that adds noise"


@dataclass(eq=False)
class TooFewShares(Unsound):
    """of {threshold} parties that must remain, {colluding} may collude: no honest share of noise is certain"""

    threshold: int
    colluding: int
    hint = "raise `threshold_share` (or `threshold`) of the profile, or lower `colluding`"


@dataclass(eq=False)
class RangeTooSmall(Unsound):
    """{crowd} rows of this question need values up to {needed} steps, and {bits} bits leave each of {parties} parties {most}"""

    crowd: int
    needed: str
    bits: int
    parties: int
    most: str
    hint = "of fixed_point: lower `steps` (a coarser grid), `crowd` or `headroom`, or set `ring` = 64"


@dataclass(eq=False)
class OtherUnit(Unsound):
    """the answers to {question!r} are bounded for each {bounded}, and the budget is one for each {protected}"""

    question: str
    bounded: str
    protected: str
    hint = "one {protected} can turn a {bounded}'s row into any other: ask for a row for each {protected} (local_epochs = 0)"
