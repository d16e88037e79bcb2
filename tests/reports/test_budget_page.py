"""Pages of a budget: all of the sheet, nothing from anywhere else, and sliders whose figures are the command's."""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent

from lab.fits import budget_curves
from securetm.accounting.calculator.persons import People, of_group
from securetm.accounting.composition import total
from securetm.accounting.ledger.privacy_filter import ALONE
from securetm.accounting.spends import Spend
from securetm.errors import BadSetting
from securetm.reports.budget import page
from securetm.reports.budget_sliders import SliderStart, tables, write_sliders

from ..cli.calculated import budget, found
from ..quick_part import quick
from .browser import Tab
from .sheets import SHEET, STATEMENT


class Seen(HTMLParser):
    """What a reader and a browser find in a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text.append(data)


def test_the_page_holds_all_of_the_sheet() -> None:
    seen = Seen(page(SHEET))
    text = " ".join(" ".join(seen.text).split())
    assert seen.open == []
    assert STATEMENT in text
    assert "epsilon = 1.829 per document" in text
    assert "Something <is> wrong." in text
    for said in (
        "PLD",
        "2.102",
        "Prices",
        "1,200",
        "A caption.",
        "A note.",
        "100,000",
        "tight & sound",
        "3 %",
    ):
        assert said in text
    assert "tokens" not in text  # was not asked


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    text = page(SHEET)
    seen = Seen(text)
    assert not {tag for tag, _ in seen.tags} & {"script", "link", "img", "iframe", "object", "embed", "a"}
    assert not [name for _, attrs in seen.tags for name in attrs if name in ("src", "href", "srcset") or name.startswith("on")]
    assert "url(" not in text
    assert "@import" not in text
    assert "http" not in text.replace("http-equiv", "")
    assert "default-src 'none'" in text


# ---- sliders ---------------------------------------------------------------------------------------------------------------


START = SliderStart(People("person", 100_000, 5, 20_000))


def test_the_page_loads_nothing_and_is_small(tmp_path: Path) -> None:
    said = budget(f"--html {tmp_path / 'page.html'} --documents 100000 --documents-per-person 5 --json")
    assert said.json == {"page": str(tmp_path / "page.html")}
    page = (tmp_path / "page.html").read_text("utf-8")
    assert len(page) < 1_000_000
    assert "default-src 'none'" in page
    assert not re.search(r"(src|href)=", page)
    assert set(re.findall(r"https?://[^\s\"']+", page)) <= {"http://www.w3.org/2000/svg"}
    assert "@media print" in page


@pytest.mark.parametrize("place", [budget_curves.FIRST, -17, 70])
def test_the_tables_are_what_would_be_computed_now(place: int) -> None:
    held = tables()["unsampled"]["epsilon"][place - budget_curves.FIRST]
    assert held == pytest.approx(budget_curves.unsampled(place), rel=1e-4, abs=1e-4)


def test_sliders_begin_at_what_can_be(tmp_path: Path) -> None:
    for more, said in (
        ("--delta 1e-3", "--delta is 0.001; it is not tabulated"),
        ("--noise inf", "--noise is inf"),
        ("--parties 1", "--parties is 1; it must be at least 2"),
        ("--missing 9", "--missing is 9; it must be below 5"),
        ("--parties 5 --missing 2 --colluding 3", "leaves no honest party"),
        ("--documents 10000000000000", "must be at least 1 and at most"),
    ):
        answer = budget(f"--html {tmp_path / 'page.html'} {more}")
        assert (answer.code, answer.out) == (2, "")
        assert said in answer.err
        assert "hint" in answer.err
        assert not (tmp_path / "page.html").exists()


def test_an_option_of_the_page_before_a_command_is_not_lost_in_silence() -> None:
    said = budget("--noise 3 laplace --scale 1")
    assert said.code == 2
    assert "put --noise behind the command" in said.err


def test_a_delta_that_is_not_tabulated_names_those_that_are() -> None:
    with pytest.raises(BadSetting) as refusal:
        SliderStart(People(), delta=0.5)
    assert "1e-06" in refusal.value.advice()


# ---- in a browser ---------------------------------------------------------------------------------------------------


@pytest.fixture
def opened(tab: Tab, tmp_path: Path) -> Tab:
    write_sliders(START, tmp_path / "page.html")
    tab.medium("screen")
    tab.wide(1280)
    tab.open(tmp_path / "page.html")
    return tab


def failures(tab: Tab) -> list[str]:
    return tab.complaints() + [str(event) for event in tab.events if event.get("method") == "Runtime.exceptionThrown"]


def told(tab: Tab, **settings: Any) -> float:
    """What the page says after these settings were made as a person makes them: by an event of each control."""
    for name, value in settings.items():
        control = name if name in ("unit", "asked", "adds", "delta") else f"{name}-typed"
        tab.asks(f"(e => {{ e.value = '{value}'; e.dispatchEvent(new Event('input')) }})(document.getElementById('{control}'))")
    return float(tab.asks("document.getElementById('figure').dataset.epsilon"))


def exact(noise: float, rounds: int, delta: float) -> float:
    return total([Spend(GaussianDpEvent(noise), count=rounds)], ALONE * delta).epsilon


POSITIONS = (  # of all sliders, and whether the promise is in the first line of the answer or in the table of persons
    {"unit": "person", "adds": "shares", "noise": 4, "rounds": 4, "parties": 5, "each": 40, "persons": 20_000},
    {"unit": "person", "adds": "opener", "noise": 8, "rounds": 16, "parties": 8, "epsilon-typed": 1},
    {"unit": "document", "adds": "party", "noise": 2, "rounds": 1, "parties": 3, "delta": "1e-05"},
    {"unit": "group", "adds": "opener", "noise": 16, "rounds": 4, "each": 4, "documents": 30_000, "persons": 9_000},
)


@pytest.mark.parametrize(
    "position",
    quick(POSITIONS, *(one for one in POSITIONS if one["adds"] == "party")),
    ids=[f"{one['unit']}-{one['adds']}" for one in POSITIONS],
)
def test_the_printed_command_says_what_the_page_says(position: dict[str, Any], opened: Tab) -> None:
    """Epsilon, what a test finds, whom it is about, the epsilon that is allowed: the command is run as it is printed."""
    at = {name.removesuffix("-typed"): value for name, value in position.items()}
    target = at.pop("epsilon", None)
    shown = told(opened, **at)
    if target is not None:  # the slider of epsilon sets the noise
        shown = told(opened, epsilon=target)
    command = opened.asks("document.getElementById('command').textContent")
    answer = found(command.removeprefix("securetm budget "))
    if at["unit"] == "group":
        row = next(row for row in answer["persons"]["rows"] if row["rows"] == "a row for each document")
        assert row["epsilon"] == pytest.approx(shown, abs=2e-3)
        return
    assert answer["epsilon"] == pytest.approx(shown, abs=5e-4)
    rate = 100 * answer["true_positive_rate"]["rate"]
    said = opened.asks("document.getElementById('meaning').textContent")
    finds = re.search(r"finds at most ([\d.]+)", said)
    assert finds is not None
    assert float(finds[1]) == pytest.approx(rate, abs=0.1)
    assert f"one {answer['unit']} " in said
    assert answer["people"]["units"] == (at.get("persons") or answer["people"]["units"])
    allowed = float(command.split("--epsilon ")[1].split()[0])
    slider = float(opened.asks("Number(document.getElementById('epsilon-typed').value)"))
    warned = "a ledger with that budget ends the run before" in opened.asks("document.getElementById('warnings').textContent")
    assert (allowed == slider) is not warned
    assert failures(opened) == []


@pytest.mark.slow
def test_where_no_profile_is_sized_for_it_another_command_counts(opened: Tab) -> None:
    shown = told(opened, unit="person", adds="shares", noise=4, rounds=4, parties=5, missing=0, colluding=1, delta="1e-06")
    command = opened.asks("document.getElementById('command').textContent")
    assert command.startswith("securetm budget distributed ")
    assert "No shipped profile is sized" in opened.asks("document.getElementById('warnings').textContent")
    assert found(command.removeprefix("securetm budget "))["epsilon"] == pytest.approx(shown, rel=0.2)


@pytest.mark.slow
def test_between_tabulated_settings_it_is_never_below_the_commands(opened: Tab) -> None:
    for noise, rounds, delta in ((7.77, 11, 1e-5), (40.0, 999, 1e-8), (0.9, 1, 1e-4)):
        shown, true = told(opened, unit="person", noise=noise, rounds=rounds, delta=f"{delta:g}"), exact(noise, rounds, delta)
        assert true <= shown <= 1.03 * true + 1e-3, (noise, rounds, delta)
    shown = told(opened, unit="group", each=5, noise=31.0, rounds=3, delta="1e-06")
    assert of_group([Spend(GaussianDpEvent(31.0), count=3)], 5, ALONE * 1e-6).epsilon <= shown
    told(opened, asked="some", unit="person", delta="1e-06")
    for rate, noise, steps in ((0.01, 1.0, 1000), (0.007, 1.1, 800)):
        shown = told(opened, rate=rate, noise=noise, rounds=steps)
        assert total([Spend(PoissonSampledDpEvent(rate, GaussianDpEvent(noise)), count=steps)], 1e-6).epsilon <= shown + 1e-9
    assert told(opened, rate=0.01, noise=1.0, rounds=1000) == pytest.approx(
        total([Spend(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0)), count=1000)], 1e-6).epsilon, abs=1e-5
    )
    assert failures(opened) == []


def test_an_epsilon_sets_the_least_noise_that_is_enough(opened: Tab) -> None:
    shown = told(opened, unit="person", rounds=6, delta="1e-06", epsilon=3)
    noise = float(opened.asks("Number(document.getElementById('noise-typed').value)"))
    assert exact(noise, 6, 1e-6) <= shown <= 3
    assert exact(noise / 1.03, 6, 1e-6) > 2.9


def test_what_cannot_be_is_said_and_not_replaced(opened: Tab) -> None:
    for setting, said in (
        ({"parties": 5, "missing": 3, "colluding": 2}, "No honest party is left"),
        ({"missing": 5}, "Somebody must remain"),
        ({"missing": 0, "colluding": 0, "parties": 2, "adds": "shares"}, "at least 4 parties"),
        ({"parties": 5, "noise": ""}, "type a number"),
        ({"noise": 0}, "at least 0.01"),
        ({"noise": 4, "rounds": 1.5}, "whole number"),
    ):
        assert math.isnan(told(opened, **setting))  # type: ignore[arg-type]
        assert said in opened.asks("document.getElementById('warnings').textContent")
        assert opened.asks("document.getElementById('figure').textContent") == "This cannot be."


def test_the_page_works_by_keyboard_and_has_names_for_a_screen_reader(opened: Tab) -> None:
    before = told(opened, rounds=4)
    opened.asks("document.getElementById('rounds').focus()")
    for kind in ("keyDown", "keyUp"):
        opened.call("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight", windowsVirtualKeyCode=39)
    assert opened.asks("document.getElementById('rounds-typed').value") == "5"
    assert told(opened) > before
    nameless = "[...document.querySelectorAll('input, select')].filter(e => !e.labels.length && !e.ariaLabel).map(e => e.id)"
    assert opened.asks(nameless) == []
    assert opened.asks("document.getElementById('noise').getAttribute('aria-valuetext')") == "4"
    assert "grows with the rounds" in opened.asks("document.getElementById('curve').getAttribute('aria-label')")
