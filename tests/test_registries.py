"""How parts are found by name, and where inputs come from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from securetm.aggregation import AGGREGATIONS
from securetm.auditing.attacks import ATTACKS
from securetm.contracts import Unit
from securetm.contracts.origin import Origin, OriginKind, PaidEntry, StartingInput, origin_of_product
from securetm.corpus.readers import READERS
from securetm.engines import ENGINES
from securetm.errors import Failed, Mistake
from securetm.mechanisms import MECHANISMS
from securetm.models import MODELS
from securetm.plans.profiles import make_model
from securetm.registries import Registry, _declared
from securetm.reports.profiles import listed_parts, show_parts, unusable_parts

GOOD = """
from dataclasses import dataclass
from securetm.contracts import Mechanism

@dataclass(frozen=True)
class Bare(Mechanism):
    most: int = 1

class NoContract:
    pass

GOOD = 3
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path in which packages are declared, as pip would leave them."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "stranger_parts.py").write_text(GOOD)
    (tmp_path / "stranger_storm.py").write_text("raise RuntimeError('storm')\n")
    (tmp_path / "stranger_leaves.py").write_text("raise SystemExit(0)\n")
    _declared.cache_clear()
    yield tmp_path
    _declared.cache_clear()


def declare(site: Path, package: str, **points: str) -> None:
    folder = site / f"{package}-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"[securetm.{group}]\n{point}\n" for group, point in points.items()]
    (folder / "entry_points.txt").write_text("".join(lines))
    _declared.cache_clear()


@pytest.mark.parametrize("registry", [MODELS, MECHANISMS, AGGREGATIONS, ATTACKS, READERS, ENGINES])
def test_each_of_our_own_parts_is_what_it_is_declared_as(registry: Registry) -> None:
    for name in registry.own:
        registry.load(name)


def test_a_part_of_another_package_is_found_by_name(site: Path) -> None:
    declare(site, "stranger", mechanisms="bare = stranger_parts:Bare")
    assert MECHANISMS.find("bare").package == "stranger"
    assert MECHANISMS.name_of(MECHANISMS.load("bare")()) == "bare"


def test_a_name_that_two_packages_declare_is_refused_by_both_names(site: Path) -> None:
    for package in ("one", "two"):
        declare(site, package, mechanisms="bare = stranger_parts:Bare")
    with pytest.raises(Mistake, match="several installed packages") as refused:
        MECHANISMS.load("bare")
    assert refused.value.facts()["packages"] == ("one", "two")
    assert "one, two" in refused.value.advice()


@pytest.mark.parametrize(
    ("point", "problem"),
    [
        ("broken = stranger_nowhere:Bare", "ModuleNotFoundError"),
        ("broken = stranger_storm:Bare", "RuntimeError: storm"),
        ("broken = stranger_parts:Nothing", "AttributeError"),
        ("broken = stranger_parts", "cannot be imported"),
        ("broken = stranger_leaves:Bare", "SystemExit"),
        ("broken = stranger_parts:GOOD", "is no securetm.contracts:Mechanism"),
        ("broken = stranger_parts:NoContract", "derives from securetm.contracts:Mechanism"),
    ],
)
def test_a_broken_part_names_its_package_and_breaks_no_other(site: Path, point: str, problem: str) -> None:
    declare(site, "stranger", mechanisms=point)
    assert "broken" in MECHANISMS.names()
    with pytest.raises(Failed) as refused:
        MECHANISMS.load("broken")
    assert problem in str(refused.value)
    assert "stranger" in str(refused.value)
    assert point.partition(" = ")[2] in str(refused.value)
    assert MECHANISMS.load("clip").__name__ == "Clip"


def test_a_model_that_calls_itself_otherwise_is_refused(site: Path) -> None:
    declare(site, "stranger", models="other = securetm.models.lda.lda:LDA")
    with pytest.raises(Failed, match="calls itself 'lda'"):
        MODELS.load("other")


def test_what_cannot_be_used_is_named_with_the_reason(site: Path) -> None:
    assert unusable_parts() == []
    declare(site, "stranger", mechanisms="bare = stranger_parts:Bare", models="stormy = stranger_storm:Model")
    declare(site, "spoilt", mechanisms="there is no equals sign here")
    broken, unread = unusable_parts()
    assert (broken["kind"], broken["name"], broken["package"]) == ("models", "stormy", "stranger")
    assert "RuntimeError: storm" in broken["problem"]
    assert unread["package"] == "spoilt"
    assert "cannot be read" in unread["problem"]
    said = StringIO()
    show_parts(listed_parts(), unusable_parts(), Console(file=said, width=200))
    assert "storm" in said.getvalue()
    assert "of the package spoilt" in said.getvalue()


def test_a_package_that_declares_one_of_our_names_takes_it_from_nobody_in_silence(site: Path) -> None:
    declare(site, "stranger", models="lda = stranger_parts:Bare")
    with pytest.raises(Mistake, match="several installed packages") as refused:
        make_model("lda", {})
    assert refused.value.facts()["packages"] == ("securetm", "stranger")
    assert make_model("lda-vi", {}).name == "lda-vi"


# ---- origins ---------------------------------------------------------------------------------------------------------------


FIRST = PaidEntry("first 1a", Unit.DOCUMENT, 1.0, 1e-5, ("north", "south"))
SECOND = PaidEntry("second 2b", Unit.DOCUMENT, 0.5, 1e-5, ("south", "west"), simulated=True)
LIST = StartingInput("vocabulary", "/srv/words.txt", Origin.public("the glossary of 2020"), declared=True)


@pytest.mark.parametrize(
    "origin",
    [Origin.public("why"), Origin.unbounded("masked"), Origin.paid([FIRST, SECOND], ["a list: why"])],
)
def test_an_origin_comes_back_from_its_text(origin: Origin) -> None:
    assert Origin.of_text(origin.as_text()) == origin


@pytest.mark.parametrize("text", ["", "3", "{}", "null", '{"kind": "public", "reason": "", "entries": [], "rests_on": []}'])
def test_a_text_that_is_no_origin_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        Origin.of_text(text)


@pytest.mark.parametrize("change", [{"epsilon": -1.0}, {"epsilon": float("inf")}, {"delta": 1.0}, {"parties": []}, {"run": ""}])
def test_an_entry_that_no_run_spent_is_refused(change: dict[str, object]) -> None:
    facts = Origin.paid([FIRST]).facts()
    facts["entries"][0] |= change
    with pytest.raises(ValueError, match=r".*"):
        Origin.of_text(json.dumps(facts))


def test_what_a_run_writes_has_the_entries_and_the_reasons_of_its_inputs() -> None:
    first = origin_of_product(FIRST, [LIST], "")
    assert first.rests_on == ("words.txt: the glossary of 2020",)
    second = origin_of_product(SECOND, [StartingInput("continue_from", "model", first), StartingInput("words", "", first)], "")
    assert second.entries == (FIRST, SECOND)
    assert second.rests_on == first.rests_on


def test_a_run_without_a_budget_or_from_an_unbounded_input_has_an_unbounded_product() -> None:
    assert origin_of_product(None, [LIST], "trained under masked").kind is OriginKind.UNBOUNDED
    open_model = StartingInput("continue_from", "model", Origin.unbounded("trained under open"))
    assert origin_of_product(FIRST, [open_model], "").kind is OriginKind.UNBOUNDED
