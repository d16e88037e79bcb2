"""All attacks, one file each: whoever adds a file with an `ATTACK` here has added an attack. There is no list to keep.

An attack of another package is found through its entry point in the group `securetm.attacks`.
"""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING

from securetm.registries import Registry

if TYPE_CHECKING:
    from securetm.leakage.attack import Attack

ATTACKS = Registry(
    "attack",
    "securetm.attacks",
    "securetm.leakage.attack:Attack",
    {module.name: f"{__name__}.{module.name}:ATTACK" for module in pkgutil.iter_modules(__path__)},
    named=True,
)


def attack_names() -> tuple[str, ...]:
    """Every attack there is, without importing any of them."""
    return ATTACKS.names()


def attack_called(name: str) -> Attack:
    """The attack of that name."""
    attack: Attack = ATTACKS.load(name)
    return attack
