"""All attacks, one file each: whoever adds a file with an `ATTACK` has added an attack. There is no list to keep."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING

from securetm.errors import NotFound

if TYPE_CHECKING:
    from securetm.leakage.attack import Attack


def attack_names() -> tuple[str, ...]:
    """Every attack there is, without importing any of them."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def attack_called(name: str) -> Attack:
    """The attack in the file of that name."""
    if name not in attack_names():
        raise NotFound("attack", name, attack_names())
    attack: Attack = import_module(f"{__name__}.{name}").ATTACK
    return attack
