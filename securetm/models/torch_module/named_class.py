"""Finds the class that a plan names as `package.module:Class`, and the digest of its source. It trains nothing.

The name comes from the reader's own plan, never from a message. The source is compared with the digest before it is imported.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
from pathlib import Path

from securetm.models.model_errors import NoTorchModule, OtherTorchModule
from securetm.models.torch_module.topic_network import TopicNetwork


def source_digest(module: str) -> str:
    """SHA-256 of the file in which the class stands. The module itself is not imported; the packages around it are."""
    name, colon, kind = module.partition(":")
    if not colon or not all(part.isidentifier() for part in (*name.split("."), kind)):
        raise NoTorchModule(module, "it must be written as package.module:Class")
    try:
        spec = importlib.util.find_spec(name)
        source = Path(spec.origin).read_bytes() if spec is not None and spec.origin else None
    except (ImportError, ValueError, OSError) as problem:
        raise NoTorchModule(module, f"looking for it ended in {type(problem).__name__}") from problem
    if source is None:
        raise NoTorchModule(module, f"there is no file of a module {name}")
    return hashlib.sha256(source).hexdigest()


def check_source(module: str, agreed: str) -> str:
    """The digest of the source, which must be the agreed one where there is one."""
    found = source_digest(module)
    if agreed and found != agreed:
        raise OtherTorchModule(module, found, agreed)
    return found


def class_named(module: str) -> type[TopicNetwork]:
    """The class. It must derive from `TopicNetwork`."""
    name, _, kind = module.partition(":")
    try:
        found = vars(importlib.import_module(name)).get(kind)
    except Exception as problem:  # the code of somebody else
        raise NoTorchModule(module, f"importing it ended in {type(problem).__name__}: {problem}") from problem
    if not isinstance(found, type) or not issubclass(found, TopicNetwork):
        raise NoTorchModule(module, f"{kind} is no class that derives from securetm.TopicNetwork")
    return found
