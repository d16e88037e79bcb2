"""Hashes of the code and the files on which a kept result depends.

Source files are read and no attack is imported, so looking up evidence is fast. A hash covers the syntax of every definition
that a result used, and neither comments nor the names of modules: a definition may move. It does not cover installed packages,
whose docstrings are the demonstration documents: other versions may give other figures.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from securetm.auditing.attacks import ATTACKS
from securetm.auditing.plans import Trial
from securetm.data_classes import asdict, dataclass
from securetm.resources import named_toml
from securetm.settings import digest

_WITHOUT_MEANING = frozenset({"ctx", "kind", "type_comment"})  # these follow from the place of a node, or have no effect
_PLACE = re.compile(r"\bsecuretm(?:\.\w+)+(?::\w+)?")  # a module as text, with or without what is meant in it
_IMPORTS = (ast.Import, ast.ImportFrom)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Definition:
    """A function, a class, a constant or a statement of a module."""

    digest: bytes
    names: frozenset[tuple[str, str]]  # each name that it uses, and the attribute of it that is used, or nothing
    places: frozenset[str]  # modules, or what is in them, that it holds as text


@dataclass(frozen=True)
class SourceText:
    """A file: what it defines by name, what runs when it is imported, and where each imported name comes from."""

    definitions: Mapping[str, Definition]
    statements: tuple[Definition, ...]
    imported: Mapping[str, tuple[str, str]]  # a name: the module, and the name in it; no name: the module itself


@cache
def code_of(path: Path) -> SourceText:
    """Reads a file once. A process that changes the file calls `code_of.cache_clear()`."""
    tree = ast.parse(path.read_text("utf-8"), filename=path.name)
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    named, statements = dict[str, Definition](), list[Definition]()
    for node in tree.body:
        if isinstance(node, _IMPORTS) or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            continue
        names: list[str] = []  # that the statement gives to what it makes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]
        made = _definition(node)
        named |= dict.fromkeys(names, made)
        statements += [] if names else [made]
    return SourceText(named, tuple(statements), dict(_imported(tree)))


def _definition(node: ast.stmt) -> Definition:
    words, names, places = list[str](), set[tuple[str, str]](), set[str]()
    _write(node, words)
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            names.add((one.id, ""))
        elif isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name):
            names.add((one.value.id, one.attr))
        elif isinstance(one, ast.Constant) and isinstance(one.value, str):
            places.update(_PLACE.findall(one.value))
    return Definition(hashlib.sha256("\n".join(words).encode()).digest(), frozenset(names), frozenset(places))


def _write(value: Any, words: list[str]) -> None:
    """One word for each node, field and constant, in the order of the source. A constant has its type: 1 is not "1"."""
    if isinstance(value, ast.AST):
        words.append(type(value).__name__)
        for field, held in ast.iter_fields(value):
            if held is not None and held != [] and field not in _WITHOUT_MEANING:
                words.append(field)
                _write(held, words)
        words.append(";")
    elif isinstance(value, list):
        words.append("[")
        for one in value:
            if not isinstance(one, _IMPORTS):
                _write(one, words)
        words.append("]")
    elif isinstance(value, str):
        # what is meant in a module, without the module
        meant = _PLACE.sub(lambda place: place[0].rpartition(":")[2] if ":" in place[0] else "module", value)
        words.append(f"str {meant!a}")
    else:
        words.append(f"{type(value).__name__} {value!a}")


def _imported(tree: ast.Module) -> Iterator[tuple[str, tuple[str, str]]]:
    """Every name that is imported anywhere in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((one.asname or one.name, (node.module or "", one.name)) for one in node.names)
        elif isinstance(node, ast.Import):
            yield from ((one.asname or one.name.partition(".")[0], (one.name, "")) for one in node.names)


# ---- what a result is bound to --------------------------------------------------------------------------------------

PROFILE, MECHANISMS, AGGREGATION, ACCOUNTING, CORPUS = "profile", "mechanisms", "aggregation", "accounting", "corpus"
THREAT_MODEL, ATTACK, JUDGING, TRIAL = "threat model", "attack", "judging", "trial"
TRYING, FEDERATION = "what tries refusals", "federation"
_PACKAGE = "securetm."
_HOUSE = Path(__file__).resolve().parent.parent

# The modules and definitions with which a closure begins, by full name: a rename finds them. Parts come from registries.
_DOCUMENTS = "securetm.federation.sources"  # makes a demonstration's documents and deals them out
_CANARIES = "securetm.auditing.ground_truth:with_canaries"
_ROUTE = "securetm.answers.route"  # of a question through the mechanisms of a profile
_PAYING = ("securetm.federation.budget.prices", "securetm.accounting.ledger")
_MALICIOUS = {
    "liars": "securetm.auditing.roles:malicious_parties",
    "meddled": "securetm.auditing.roles:malicious_rounds",
    "network": "securetm.auditing.roles:over_network",
}  # by setting of a trial
_TRYING = ("securetm.auditing.refusals",)
_ROLES = ("securetm.federation.party.party", "securetm.federation.coordinator.coordinator")
_JUDGES = tuple(
    f"securetm.auditing.{name}"
    for name in ("verdicts", "judging", "ground_truth:ground_truth_of", "ground_truth:colluding_parties_of")
)


def bound_to(trial: Trial, profile: str) -> dict[str, str]:
    """Hashes of everything that the result of this trial on this profile depends on, by name."""
    malicious = (by for setting, by in _MALICIOUS.items() if getattr(trial, setting))
    return {
        **_parts(profile),
        # of what makes documents and deals them out, and of what makes canaries if the trial has any
        CORPUS: _of_source((_DOCUMENTS, _CANARIES) if trial.canaries else (_DOCUMENTS,), ("corpus.",)),
        THREAT_MODEL: _file("threat_models", trial.threat_model),
        # the attack, the malicious role of the run, and all in `auditing` that these use
        ATTACK: _of_source((ATTACKS.find(trial.attack).place, *malicious), ("auditing.",)),
        JUDGING: _of_source(_JUDGES, ()),
        TRIAL: trial_hash(trial),
    }


def refusals_bound_to(profile: str) -> dict[str, str]:
    """Hashes of everything that a profile's refusals depend on, by name: above all the code of the parties."""
    return {**_parts(profile), TRYING: _of_source(_TRYING, ("auditing.",)), FEDERATION: _of_source(_ROLES, ("federation.",))}


def changes(now: Mapping[str, str], bound: Mapping[str, str], profile: str, attack: str, threat_model: str) -> tuple[str, ...]:
    """What changed since a result was bound to other hashes than those of now, in words."""
    names = {
        PROFILE: f"the profile {profile}",
        MECHANISMS: f"a mechanism of the profile {profile}",
        AGGREGATION: f"the aggregation of the profile {profile}",
        ACCOUNTING: f"the accounting of the epsilon of {profile}",
        CORPUS: "the making of the documents",
        THREAT_MODEL: f"the threat model {threat_model}",
        ATTACK: f"the attack {attack}",
        JUDGING: "the making of intervals and verdicts",
        TRYING: "what tries the parties' refusals",
        FEDERATION: "what parties and the coordinator do",
    }
    return tuple(f"{names[what]} changed since" for what in now if bound.get(what) != now[what])


def trial_hash(trial: Trial) -> str:
    """The hash of a trial without its list of profiles: a new profile makes no result of another one stale.

    Empty settings are left out, so a new kind of setting changes no trial that does not use it.
    """
    return digest({name: value for name, value in asdict(trial).items() if name != "profiles" and value}).hex()


@cache
def _parts(profile: str) -> dict[str, str]:
    """Hashes of the profile's file, its mechanisms, its aggregation and, if it has a budget, its accounting."""
    from securetm.plans.profiles import read_profile  # with all mechanisms, whose arithmetic is slow to import

    parts = read_profile(profile)
    whole = ("mechanisms.", "aggregation.", "sessions.", "accounting.", "entropy", "answers.")
    *mechanisms, aggregation = (
        f"{type(part).__module__}:{type(part).__qualname__}" for part in (*parts.mechanisms, parts.aggregation)
    )
    found = {
        PROFILE: _file("protocols", profile, "profiles"),
        MECHANISMS: _of_source((*mechanisms, _ROUTE), whole),
        AGGREGATION: _of_source((aggregation,), whole),
    }
    # Without a budget nothing is spent.
    return found if parts.budget is None else {**found, ACCOUNTING: _of_source(_PAYING, ("accounting.",))}


def _file(folder: str, name: str, below: str = "") -> str:
    return _hashed([named_toml(folder, name, below=below, kind=folder).read_bytes()])


@cache
def _of_source(roots: tuple[str, ...], within: tuple[str, ...]) -> str:
    """The hash of what these places define, and of all that it uses inside these folders of securetm.

    It says nothing of where a definition stands: moving one, or its whole file, makes no result stale.
    """
    found = closure(roots, within)
    return _hashed(sorted({made.digest for place in found for made in _made(*place)}))


_Place = tuple[str, str]  # a module below securetm, and a name in it; no name: what runs when it is imported


def closure(roots: Iterable[str], within: tuple[str, ...]) -> frozenset[_Place]:
    """The definitions of these places, `module` or `module:name`, and all that they use inside these folders.

    A name counts as used wherever a definition has it, also as text that names a module.
    """
    found, waiting = set[_Place](), [place for root in roots for place in _places(root.removeprefix(_PACKAGE))]
    while waiting:
        place = waiting.pop()
        if place in found:
            continue
        found.add(place)
        module, name = place
        waiting += [(module, "")] if name else []
        for made in _made(module, name):
            used = (one for use in made.names for one in _used(module, *use))
            used_as_text = (one for text in made.places for one in _places(text.removeprefix(_PACKAGE), strict=False))
            waiting += [one for one in (*used, *used_as_text) if one[0].startswith(within) or one[0] == module]
    return frozenset(found)


def _made(module: str, name: str) -> tuple[Definition, ...]:
    source = code_of(_source(module))
    return (source.definitions[name],) if name else source.statements


def _places(text: str, *, strict: bool = True) -> list[_Place]:
    """What a place names: one definition, or all of a module. A text that only looks like a place names nothing."""
    module, _, name = text.partition(":")
    if not strict:
        module = _module(module)
        if not module:
            return []
    if name:
        return list(_resolved(module, name))
    source = code_of(_source(module))
    own = [(module, ""), *((module, one) for one in source.definitions)]
    handed_on = source.imported if _path(module).name == "__init__.py" else ()  # what a folder's own file names is meant, too
    return own + [place for one in handed_on for place in _used(module, one, "")]


def _used(module: str, name: str, attribute: str) -> Iterator[_Place]:
    """What a name in this module stands for, if the package defines it."""
    source = code_of(_source(module))
    if name in source.definitions:
        yield module, name
        return
    within, imported = source.imported.get(name, ("", ""))
    if not within.startswith(_PACKAGE):
        return
    whole = _module(f"{within}.{imported}".removeprefix(_PACKAGE)) if imported else ""
    if imported and whole != f"{within}.{imported}".removeprefix(_PACKAGE):
        yield from _resolved(within.removeprefix(_PACKAGE), imported)
    else:  # the name stands for a module, of which an attribute is used
        yield from _resolved(whole or within.removeprefix(_PACKAGE), attribute) if attribute else ()


def _resolved(module: str, name: str) -> Iterator[_Place]:
    """Where a name of a module is defined, perhaps in another one that it imports it from."""
    if name in code_of(_source(module)).definitions:
        yield module, name
    else:
        yield from _used(module, name, "")


def _module(mention: str) -> str:
    """The longest beginning of a dotted name that is a module; empty if none is."""
    parts = mention.strip(".").split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in names if _path(name).is_file()), "")


def _path(module: str) -> Path:
    path = _HOUSE.joinpath(*module.split("."))
    file = path.with_suffix(".py")  # a folder of that name may be left over where the file came from
    return file if file.is_file() else path / "__init__.py"


def _source(module: str) -> Path:
    """The file of a module below `securetm`, or of a part of another package."""
    own = _path(module)
    found = None if own.is_file() else find_spec(module)
    return Path(found.origin) if found is not None and found.origin else own


def _hashed(pieces: Iterable[bytes]) -> str:
    whole = hashlib.sha256()
    for piece in pieces:
        whole.update(len(piece).to_bytes(8, "little") + piece)
    return whole.hexdigest()
