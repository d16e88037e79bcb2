"""Libraries that only some work needs: the extra of securetm that installs each, and those that load when they are used."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


# Needs nothing else of its package, which imports all of itself: a second, and 150 MB.
_BY_ITSELF = frozenset({"dp_accounting.dp_event"})


def loaded(name: str) -> Any:
    """The module of this name; one that needs nothing else of its package is imported without it."""
    package, _, own = name.partition(".")
    if name in _BY_ITSELF and not {package, name} & set(sys.modules) and (whole := find_spec(package)) and whole.origin:
        spec = spec_from_file_location(name, Path(whole.origin).with_name(f"{own}.py"))
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules.setdefault(name, module)  # another thread may have been quicker
    return import_module(name)


class _Later:
    """Stands for a module that is imported when something of it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        found = getattr(loaded(self._name), name)
        self.__dict__[name] = found
        return found


def later(name: str) -> Any:
    """The module of this name, which is imported when something of it is first used.

    For libraries that take a second and many megabytes: a party that waits has neither to spare.
    """
    return _Later(name)


if TYPE_CHECKING:
    import msgspec as msgspec
    from scipy import sparse as sparse
else:
    msgspec = later("msgspec")
    sparse = later("scipy.sparse")  # matrices of documents, which nobody has before there are words
