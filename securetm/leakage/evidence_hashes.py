"""Hashes of the code and the files on which a kept result depends. This module runs no attack.

It reads source files and imports no attack, so looking up evidence is fast. A hash ignores comments, docstrings and layout.
It does not cover installed packages, whose docstrings are the demonstration documents: other versions may give other figures.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from securetm.leakage.attacks import ATTACKS
from securetm.leakage.audit_plans import Trial
from securetm.leakage.source_code import code_of
from securetm.resources import named_toml
from securetm.toml_settings import digest

PROFILE, MECHANISMS, AGGREGATION, ACCOUNTING, CORPUS, THREAT_MODEL, ATTACK, JUDGING, TRIAL = (
    "profile",
    "mechanisms",
    "aggregation",
    "accounting",
    "corpus",
    "threat model",
    "attack",
    "judging",
    "trial",
)
TRYING, FEDERATION = "what tries refusals", "federation"
_HOUSE = Path(__file__).resolve().parent.parent

# The modules with which a closure begins, by full name, so that a rename finds them. Parts come from registries.
_DOCUMENTS = ("securetm.federation.sources",)  # makes a demonstration's documents and deals them out
_CANARIES = ("securetm.leakage.canaries",)
_ROUTE = "securetm.route"  # of a question through the mechanisms of a profile
_PAYING = ("securetm.federation.paying", "securetm.accounting.ledger")
_MALICIOUS = {
    "liars": "securetm.leakage.malicious_party",
    "meddled": "securetm.leakage.malicious_coordinator",
    "network": "securetm.leakage.networked",
}  # by setting of a trial
_TRYING = ("securetm.leakage.below_minimum", "securetm.leakage.protocol_violations")
_ROLES = ("securetm.federation.party", "securetm.federation.coordinator")
_JUDGES = tuple(
    f"securetm.leakage.{name}" for name in ("intervals", "measured_figures", "verdicts", "ground_truth", "controls")
)


def bound_to(trial: Trial, profile: str) -> dict[str, str]:
    """Hashes of everything that the result of this trial on this profile depends on, by name."""
    return {
        **_parts(profile),
        CORPUS: _corpus_hash(trial.canaries > 0),
        THREAT_MODEL: _file("threat_models", trial.threat_model),
        ATTACK: attack_hash(trial.attack, tuple(by for setting, by in _MALICIOUS.items() if getattr(trial, setting))),
        JUDGING: _judging_hash(),
        TRIAL: trial_hash(trial),
    }


def refusals_bound_to(profile: str) -> dict[str, str]:
    """Hashes of everything that a profile's refusals depend on, by name: above all the code of the parties."""
    return {**_parts(profile), TRYING: _trying_hash(), FEDERATION: _federation_hash()}


def trial_hash(trial: Trial) -> str:
    """The hash of a trial without its list of profiles: a new profile makes no result of another one stale.

    Empty settings are left out, so a new kind of setting changes no trial that does not use it.
    """
    return digest({name: value for name, value in asdict(trial).items() if name != "profiles" and value}).hex()


@cache
def attack_hash(name: str, malicious: tuple[str, ...] = ()) -> str:
    """The hash of the attack's file, the malicious role of the run, and all modules of `leakage` that these import."""
    return _of_source((ATTACKS.find(name).module, *malicious), ("leakage.",))


@cache
def _corpus_hash(canaries: bool) -> str:
    """The hash of what makes documents and deals them out, and of what makes canaries if the trial has any."""
    return _of_source((*_DOCUMENTS, *(_CANARIES if canaries else ())), ("corpus.",))


@cache
def _judging_hash() -> str:
    """The hash of what makes intervals and verdicts, the ground truth, and the control."""
    return _of_source(_JUDGES, ())


@cache
def _trying_hash() -> str:
    """The hash of what tries runs below a minimum and protocol violations, and of all modules of `leakage` it imports."""
    return _of_source(_TRYING, ("leakage.",))


@cache
def _federation_hash() -> str:
    """The hash of party and coordinator, and of all modules of `federation` that they import."""
    return _of_source(_ROLES, ("federation.",))


@cache
def _parts(profile: str) -> dict[str, str]:
    """Hashes of the profile's file, its mechanisms, its aggregation and, if it has a budget, its accounting."""
    from securetm.profiles import read_profile  # with all mechanisms, whose arithmetic is slow to import

    parts = read_profile(profile)
    whole = ("mechanisms.", "aggregation.", "sessions.", "accounting.", "entropy", "clipped_sum", "block_answers", "block_sums")
    mechanisms = [*sorted({type(part).__module__ for part in parts.mechanisms}), _ROUTE]
    found = {
        PROFILE: _file("protocols", profile, "profiles"),
        MECHANISMS: _hashed(f"{name} {_of_source((name,), whole)}".encode() for name in mechanisms),
        AGGREGATION: _of_source((type(parts.aggregation).__module__,), whole),
    }
    # Without a budget nothing is spent.
    return found if parts.budget is None else {**found, ACCOUNTING: _of_source(_PAYING, ("accounting.",))}


def _file(folder: str, name: str, below: str = "") -> str:
    return _hashed([named_toml(folder, name, below=below, kind=folder).read_bytes()])


def _of_source(modules: tuple[str, ...], within: tuple[str, ...]) -> str:
    """The hash of modules and of all that they import, directly or not, inside these folders of securetm."""
    return _hashed(f"{name}\n".encode() + code_of(_source(name)).digest for name in closure(modules, within))


def closure(modules: Iterable[str], within: tuple[str, ...]) -> tuple[str, ...]:
    """Modules and all that they import inside these folders, by name below `securetm`, sorted.

    A module counts as imported if the file names it anywhere: at the top, inside a function, or as text.
    """
    found, waiting = set[str](), {name.removeprefix("securetm.") for name in modules}
    while waiting:
        name = waiting.pop()
        found.add(name)
        named = {_module(mention) for mention in code_of(_source(name)).mentions}
        waiting |= {other for other in named if other.startswith(within)} - found
    return tuple(sorted(found))


def _module(mention: str) -> str:
    """The longest beginning of a dotted name that is a module; empty if none is."""
    parts = mention.strip(".").split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in names if _path(name).is_file()), "")


def _path(module: str) -> Path:
    path = _HOUSE.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


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
