"""What a kept result is bound to: the source of all that made it, and of nothing else. No audit is carried out here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from securetm.auditing import bindings
from securetm.auditing.bindings import bound_to, closure
from securetm.auditing.plans import Trial, read_audit_plan

from ..quick_part import quick
from .copied_source import CopiedSource

BOUND = {"profile", "mechanisms", "aggregation", "corpus", "threat model", "attack", "judging", "trial"}


MEASURE = "share of one sum's epsilon that is shown, if the noise is Gaussian"
KNOWN: dict[str, Mapping[str, str]] = {}


@cache
def of_noise() -> Trial:
    """A trial of an epsilon."""
    found = [t for t in read_audit_plan("empirical_epsilon").trials if t.attack == "many_run_epsilon" and t.measure == MEASURE]
    return replace(found[0], profiles=("open", "dp-local"))


def _unchanged(trial: Trial, profile: str) -> Mapping[str, str]:
    """What a result is bound to by the source as it is: to be asked before a test changes anything."""
    key = f"{trial} {profile}"
    if key not in KNOWN:
        KNOWN[key] = bound_to(trial, profile)
    return KNOWN[key]


def _modules(roots: tuple[str, ...], within: tuple[str, ...]) -> set[str]:
    return {module for module, _ in closure(roots, within)}


def test_an_attack_is_bound_to_all_that_it_is_made_of_and_not_to_the_frame() -> None:
    made_of = _modules(("auditing.attacks.gradient_inversion",), ("auditing.",))
    assert {"auditing.attacks.gradient_inversion", "auditing.parts.gradients", "auditing.views", "auditing.attack"} <= made_of
    assert not made_of & {"auditing.runner", "auditing.evidence", "auditing.attacks.traffic"}


def test_an_aggregation_is_bound_to_helpers_that_it_starts_by_name() -> None:
    within = ("aggregation.", "mechanisms.")
    assert "aggregation.homomorphic.worker" in _modules(("aggregation.homomorphic.bfv",), within)
    assert _modules(("aggregation.plain:PlainSum",), within) == {"aggregation.plain", "aggregation.vectors"}


def test_a_part_of_another_package_is_bound_with_what_it_uses_of_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "from securetm.auditing.verdicts import corrected\ndef attack(): return corrected()\n"
    (tmp_path / "somebodys_attack.py").write_text(text, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert {("auditing.verdicts", "corrected"), ("somebodys_attack", "attack")} <= closure(
        ("somebodys_attack",), ("auditing.",)
    )
    with pytest.raises((FileNotFoundError, ModuleNotFoundError)):
        closure(("nobodys_attack",), ("auditing.",))


MAKES_STALE: dict[str, set[str]] = {
    "accounting/composition.py": {"accounting"},  # what makes one epsilon of all answers
    "accounting/losses.py": {"accounting"},
    "accounting/ledger/accounts.py": {"accounting"},
    "federation/budget/prices.py": {"accounting"},
    "corpus/docstrings.py": {"corpus"},
    "corpus/tokeniser.py": {"corpus"},
    "corpus/readers.py": {"corpus"},  # who deals documents out knows files, too
    "corpus/word_vectors.py": set(),
    "federation/sources.py": {"corpus"},
    "mechanisms/gaussian_noise.py": {"mechanisms"},
    "answers/route.py": {"mechanisms"},
    "auditing/attack.py": {"attack"},
    "auditing/views.py": {"attack"},
    "auditing/parts/empirical_epsilon.py": {"attack"},
    "auditing/verdicts.py": {"attack", "judging"},
    "auditing/judging.py": {"judging"},
    "auditing/ground_truth.py": {"judging"},
    "auditing/plans.py": set(),
    "auditing/roles.py": set(),  # nobody lies in this trial
    "auditing/runner.py": set(),
    "cli/main.py": set(),
}
FEW = ("corpus/docstrings.py", "auditing/plans.py")


@pytest.mark.parametrize("changed", quick(MAKES_STALE, *FEW))
def test_what_a_changed_file_makes_stale(copied: CopiedSource, changed: str) -> None:
    before = _unchanged(of_noise(), "dp-local")
    assert set(before) == BOUND | {"accounting"}
    copied.change(changed)
    after = bound_to(of_noise(), "dp-local")
    assert {name for name in before if before[name] != after[name]} == MAKES_STALE[changed]


def test_moving_code_makes_nothing_stale_and_another_operator_does(copied: CopiedSource) -> None:
    trial = of_noise()
    before = _unchanged(trial, "dp-local")
    for old, new in (
        ("auditing/parts/empirical_epsilon.py", "auditing/shown_epsilon.py"),
        ("accounting/losses.py", "accounting/ledger/losses.py"),
        ("mechanisms/noise_laws.py", "mechanisms/compiled_noise.py"),
    ):
        copied.move(old, new)
    assert bound_to(trial, "dp-local") == before
    copied.change("accounting/ledger/losses.py", lambda text: text.replace(" + ", " - ", 1))
    changed = bound_to(trial, "dp-local")
    assert {name for name in before if before[name] != changed[name]} == {"accounting"}


def _digests(path: Path) -> list[bytes]:
    source = bindings.code_of(path)
    return [made.digest for made in (*source.definitions.values(), *source.statements)]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("x = 1", "x = 1  # why", True),
        ("x = (1 +\n 2)", "x = 1 + 2", True),
        ('def f():\n    """Says."""\n    return 1', "def f():\n    return 1", True),
        ('class A:\n    """Says."""\n    x = 1', 'class A:\n    """Says else."""\n    x = 1', True),
        ("import a\nx = 1", "from b import a\nx = 1", True),
        ("x = 'securetm.a.b:C'", "x = 'securetm.d:C'", True),
        ("x = 'securetm.a.b:C'", "x = 'securetm.a.b:D'", False),
        ("x = 1", "x = 2", False),
        ("x = 1", 'x = "1"', False),
        ("x = 1", "x = 1.0", False),
        ("x = 1", "x = True", False),
        ("x = b'a'", "x = 'a'", False),
        ("x = ''", "x = None", False),
        ("x = f(a)", "x = f(*a)", False),
        ("x = [1, 2]", "x = [[1], 2]", False),
        ("def f(a, *, b): ...", "def f(a, b): ...", False),
        ("def f(*, b=None): ...", "def f(*, b): ...", False),
        ('x = 1\n"""Not a docstring."""', "x = 1", False),
        ("a < b < c", "a < b > c", False),
        ("def f(): return", "def f(): return None", False),
    ],
)
def test_only_what_code_does_is_in_its_digest(tmp_path: Path, one: str, other: str, same: bool) -> None:
    for name, text in (("one.py", one), ("other.py", other)):
        (tmp_path / name).write_text(text + "\n", "utf-8")
    assert (_digests(tmp_path / "one.py") == _digests(tmp_path / "other.py")) == same


def test_the_digest_of_known_code_is_the_same_under_every_version_of_python(tmp_path: Path) -> None:
    text = "import os\n\nasync def f[T](a: T, /, *b, c=1, **d):\n" if False else "def f(a, /, *b, c=1, **d):\n"
    text += "    with open(a) as g, h: yield f'{a!r:>{c}} b'\n    match a:\n        case [1, *x] if x: return None\n"
    (tmp_path / "known.py").write_text(text, "utf-8")
    assert [digest.hex()[:16] for digest in _digests(tmp_path / "known.py")] == ["28345b499bd21d10"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "lies"),
    quick([("liars", "auditing/roles.py"), ("meddled", "auditing/roles.py")], ("liars", "auditing/roles.py")),
)
def test_a_result_is_bound_to_who_lied_for_it(copied: CopiedSource, setting: str, lies: str) -> None:
    trial = replace(of_noise(), **{setting: 1})
    before = _unchanged(trial, "open")
    copied.change(lies)
    assert bound_to(trial, "open")["attack"] != before["attack"]


@pytest.mark.parametrize(
    ("changed", "stale"),
    quick([("auditing/ground_truth.py", True), ("corpus/word_vectors.py", False)], ("auditing/ground_truth.py", True)),
)
def test_made_documents_are_bound_to_what_makes_them(copied: CopiedSource, changed: str, stale: bool) -> None:
    trial = replace(of_noise(), canaries=10)
    before = _unchanged(trial, "open")
    copied.change(changed)
    assert (bound_to(trial, "open") != before) == stale
