"""Stores a trained model as one safetensors file: arrays, and settings as JSON. It uses no pickle and runs no code.

The file holds the model's state and the words of its vocabulary; it holds no documents.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from safetensors import SafetensorError

from securetm.contracts import State, TopicModel
from securetm.contracts.origin import Origin
from securetm.data_classes import dataclass, fields
from securetm.errors import BadSetting, CannotWrite, Failed, Mistake, NotFound
from securetm.models.tensor_file import packed, unpacked
from securetm.private_files import writing
from securetm.registries import Registry
from securetm.settings import from_table

if TYPE_CHECKING:
    from securetm.corpus.tokeniser import Tokeniser


NETWORKS = Registry("network", "securetm.networks", "securetm.models.neural.torch_module:TopicNetwork", {})
NAMED = "SECURETM_NETWORKS"  # the environment variable in which a user names classes, with commas between them


def check_known(path: str, module: object, own: str = "") -> None:
    """Refuses a file that names an unknown class. `own` is the class that the reader's own plan names, if there is one.

    A class is known if this program imported its module, a package declares it as an entry point, or the user named it.
    """
    if not module or module == own or str(module).partition(":")[0] in sys.modules:
        return
    named = {one.strip() for one in os.environ.get(NAMED, "").split(",")}
    if str(module) not in named | {part.place for part in NETWORKS.listed()}:
        raise Mistake(
            "{path} names {module!r}, and no file of a run or model makes securetm import code",
            hint="if you trust that class: import its module before you load the file, name the class in the "
            "environment variable "
            "SECURETM_NETWORKS for commands, or declare it as an entry point in the group securetm.networks",
            path=path,
            module=str(module),
        )


def check_plan_of(path: str, plan: Mapping[str, Any], own: str = "") -> None:
    """Refuses the tables of a plan, out of a file of a run, that name an unknown class, wherever they do."""
    for module in _named(plan.get("model")):
        check_known(path, module, own)


def _named(table: object) -> Iterator[object]:
    if isinstance(table, Mapping):
        for name, value in table.items():
            yield from (value,) if name == "module" else _named(value)


VERSION = 1
_KIND = "securetm topic model"
_TOKENISER = "tokeniser"  # of the texts that were learned from, where it was not the usual one
_ORIGIN = "origin"  # of what was learned; a file without one says nothing of the documents that made it
M = TypeVar("M", bound=TopicModel)


def write_model(
    path: Path,
    model: Any,
    state: State,
    vocabulary: tuple[str, ...],
    tokeniser: Tokeniser | None = None,
    origin: Origin | None = None,
) -> None:
    """Writes the file whole or not at all, readable by its owner only. The same model gives the same bytes."""
    settings = {f.name: getattr(model, f.name) for f in fields(model)}
    facts = {"kind": _KIND, "version": str(VERSION), "model": model.name, "settings": json.dumps(settings, sort_keys=True)}
    if tokeniser is not None:
        facts |= {_TOKENISER: json.dumps(tokeniser.settings(), sort_keys=True)}
    if origin is not None:
        facts |= {_ORIGIN: origin.as_text()}
    half = path.with_name(path.name + ".part")
    try:
        with writing(half) as stream:
            stream.write(packed(state, {**facts, "vocabulary": json.dumps(vocabulary)}))
        half.replace(path)
    except (OSError, SafetensorError) as problem:
        raise CannotWrite(str(path), str(problem)) from problem


@dataclass(frozen=True)
class StoredModel:
    """A file that `write_model` wrote, read whole and compared with its digest. Nothing else of it is checked yet."""

    path: Path
    facts: Mapping[str, str]
    state: State

    @classmethod
    def open(cls, path: Path) -> Self:
        """Reads the file; one that is not there, or is damaged, is refused."""
        if not path.is_file():
            raise NotFound("model file", str(path))
        try:
            return cls(path, *unpacked(path))
        except SafetensorError as problem:
            raise _damaged_model(path, str(problem)) from problem

    @property
    def words(self) -> tuple[str, ...]:
        """The vocabulary, whatever its model is."""
        with _damaged(self.path, "it is no model with words", KeyError, ValueError, TypeError, RecursionError):
            return tuple(map(str, json.loads(self.facts["vocabulary"])))

    @property
    def origin(self) -> Origin | None:
        """Where the model comes from, as whoever wrote it says; None where the file does not say it."""
        with _damaged(self.path, "its origin cannot be read", ValueError, RecursionError):
            return None if (written := self.facts.get(_ORIGIN)) is None else Origin.of_text(written)

    @property
    def tokeniser(self) -> Tokeniser | None:
        """What reads texts for the model; None for the usual tokeniser."""
        if (written := self.facts.get(_TOKENISER)) is None:
            return None
        from securetm.corpus.tokeniser import Tokeniser

        with _damaged(self.path, "its tokeniser cannot be read", KeyError, ValueError, TypeError, RecursionError):
            settings = json.loads(written)
            return Tokeniser(words=_own_function) if settings is None else Tokeniser.of_settings(settings)

    def model_of(self, kind: type[M]) -> tuple[M, State, tuple[str, ...]]:
        """The model of that class, its state and its vocabulary."""

        def only(name: str) -> type[M]:
            if name != kind.name:
                raise Mistake(
                    "{path} holds a {found}, not a {wanted}",
                    hint="load it with securetm.load(path), which loads every model, or with the class that saved it",
                    path=str(self.path),
                    found=name,
                    wanted=kind.__name__,
                )
            return kind

        return self.model(only)

    def model(self, kind_of: Callable[[str], type[M]], module: object = "") -> tuple[M, State, tuple[str, ...]]:
        """The model, its state and its vocabulary. `kind_of` gives the class of that name.

        A file never causes an import: a network of torch that it names must be `module`, which the reader's plan names, or
        known (`NETWORKS`).
        """
        path, facts = self.path, self.facts
        if facts.get("kind") != _KIND:
            raise _damaged_model(path, "it is no model of securetm")
        if facts.get("version") != str(VERSION):
            raise Failed(
                "{path} is a model file of version {found}, this securetm reads version {known}",
                hint="load it with the securetm that wrote it, or a newer one",
                path=str(path),
                found=str(facts.get("version")),
                known=str(VERSION),
            )
        kind = kind_of(str(facts.get("model")))
        with _damaged(path, "its settings or its vocabulary cannot be read", KeyError, ValueError, TypeError, RecursionError):
            settings, vocabulary = dict(json.loads(facts["settings"])), tuple(map(str, json.loads(facts["vocabulary"])))
        check_known(str(path), settings.get("module", ""), str(module))
        with _damaged(path, "its settings are not this model's", NotFound, BadSetting):
            model = from_table(kind, settings, str(path))
        if len(set(vocabulary)) < len(vocabulary):
            raise _damaged_model(path, "a word stands twice in its vocabulary")
        with _damaged(path, "its settings ask for more memory than there is", MemoryError, ValueError, OverflowError):
            fits = model.fits(self.state, len(vocabulary))
        if not fits:
            raise _damaged_model(path, "its arrays are not those of such a model of that size")
        return model, self.state, vocabulary


def _own_function(text: str) -> list[str]:  # noqa: ARG001 - it is called as that function would be
    """Stands for a function of the user's own, which no file holds."""
    raise Mistake(
        "this model learned from texts whose words a function found, and no file holds that function",
        hint="read texts by it: Corpus.from_strings(texts, tokeniser=Tokeniser(words=...)).project(model.learned.vocabulary)",
    )


@contextmanager
def _damaged(path: Path, problem: str, *faults: type[Exception]) -> Iterator[None]:
    """Reports these faults of a file as a damaged model."""
    try:
        yield
    except faults as fault:
        raise _damaged_model(path, problem) from fault


def _damaged_model(path: Path, problem: str) -> Failed:
    return Failed(
        "{path} cannot be read as a model: {problem}",
        hint="save the model again; only files written by save() can be loaded",
        path=str(path),
        problem=problem,
    )
