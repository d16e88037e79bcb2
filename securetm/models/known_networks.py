"""Which classes of networks a file may name: those that this program imported, that packages declare, or that its user named.

A folder or file of a model comes from anywhere. Python would import whatever module it names, from whatever folder lies on the
path, and importing runs code. So a name in a file is looked up here, and is never imported because it stands there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from securetm.models.model_errors import NotImported
from securetm.registries import Registry

NETWORKS = Registry("network", "securetm.networks", "securetm.models.torch_module.topic_network:TopicNetwork", {})
NAMED = "SECURETM_NETWORKS"  # the environment variable in which a user names classes, with commas between them


def check_known(path: str, module: object, own: str = "") -> None:
    """Refuses a file that names an unknown class. `own` is the class that the reader's own plan names, if there is one."""
    if module and module != own and not is_known(str(module)):
        raise NotImported(path, str(module))


def check_plan_of(path: str, plan: Mapping[str, Any], own: str = "") -> None:
    """Refuses the tables of a plan, out of a file of a run, that name an unknown class, wherever they do."""
    for module in _named(plan.get("model")):
        check_known(path, module, own)


def is_known(module: str) -> bool:
    """Whether this program imported the module, a package declares the class as an entry point, or the user named it."""
    named = {one.strip() for one in os.environ.get(NAMED, "").split(",")}
    declared = {part.place for part in NETWORKS.listed()}
    return module.partition(":")[0] in sys.modules or module in named | declared


def _named(table: object) -> Iterator[object]:
    if isinstance(table, Mapping):
        for name, value in table.items():
            yield from (value,) if name == "module" else _named(value)
