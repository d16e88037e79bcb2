"""What samplers of noise refuse, and why."""

from __future__ import annotations

from dataclasses import dataclass

from securetm.errors.tree import Misuse


@dataclass(eq=False)
class NotAScale(Misuse):
    """{law} noise cannot be drawn with {name} = {value}"""

    law: str
    name: str
    value: str
    needed: str
    hint = "give {name} as {needed}"


@dataclass(eq=False)
class TooMuchNoise(Misuse):
    """{law} noise with {name} = {value} is beyond what is drawn exactly here"""

    law: str
    name: str
    value: str
    most: str
    hint = "stay at or below {most}: a coarser grid needs less noise in its own steps"


@dataclass(eq=False)
class NotAChance(Misuse):
    """{value} is no probability that noise may exceed a bound with"""

    value: str
    hint = "give a number above 0 and below 1"
