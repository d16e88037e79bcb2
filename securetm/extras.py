"""Libraries that only some work needs, and the extra of securetm that installs each."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from securetm.errors import Mistake

EXTRA_OF = {
    "flwr": "flower",
    "fsspec": "courier",
    "huggingface_hub": "embeddings",
    "matplotlib": "report",
    "ot": "evaluate",
    "pandas": "pandas",
    "paramiko": "courier",
    "pyarrow": "parquet",
    "ray": "ray",
    "sentence_transformers": "embeddings",
    "sklearn": "evaluate",
    "tenseal": "he",
    "torch": "neural",
    "transformers": "embeddings",
    "typst": "report",
    "wordfreq": "languages",
}


def missing_extra(problem: ModuleNotFoundError) -> Mistake | None:
    """What to install for an import that failed; None where no extra of securetm brings it."""
    library = (problem.name or "").partition(".")[0]
    if library not in EXTRA_OF:
        return None
    extra = EXTRA_OF[library]
    hint = "pip install 'securetm[{extra}]'"
    return Mistake("this needs {library}, which is not installed", hint=hint, library=library, extra=extra)


class _Later:
    """Stands for a module that is imported when something of it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module(self._name), name)
        self.__dict__[name] = found
        return found


def later(name: str) -> Any:
    """The module of this name, which is imported when something of it is first used.

    For libraries that take a second and many megabytes: a party that waits has neither to spare.
    """
    return _Later(name)
