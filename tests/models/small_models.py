"""Small settings for every model of the registry, so that a test can go over all of them. It trains nothing."""

from __future__ import annotations

from typing import Any

from securetm.models import MODELS

EMBEDDED = 16  # numbers of an embedding
OURS = tuple(name for name in MODELS.names() if MODELS.load(name).__module__.startswith("securetm."))
_SMALL = {"hidden": 8, "embedding_size": EMBEDDED, "module": "tests.models.torch_module.networks:SmallNetwork"}


def small_settings(model: str, topics: int) -> dict[str, Any]:
    """Those of the small settings that this model has."""
    known = MODELS.load(model).__dataclass_fields__
    return {name: value for name, value in {"n_topics": topics, **_SMALL}.items() if name in known}
