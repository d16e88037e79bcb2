"""Every attack is one complete file that reaches the channels of its adversary and public arithmetic, and nothing else."""

from __future__ import annotations

import ast
import dataclasses
import sqlite3
import sys
from pathlib import Path
from typing import cast

import numpy as np
import pytest

import securetm
from securetm.auditing import attacks
from securetm.auditing.attack import Attack
from securetm.auditing.attacks import ATTACKS, attack_called, attack_names, declared
from securetm.auditing.recorded import granted_to, serials_of, view_of
from securetm.auditing.runner import audit
from securetm.auditing.views import AdversaryView, NotGranted, questions_in
from securetm.contracts import Adversary
from securetm.errors import Mistake
from securetm.settings import digest
from securetm.threats import CHANNELS

from .conftest import Recorded, adversary, write_plan
from .tried import reachable

HOUSE = Path(securetm.__file__).parent
FOLDER = HOUSE / "auditing" / "attacks"
OPENING = tuple(
    "recorded ground_truth runs runner trials given_run judging roles refusals evidence bindings".split()
)  # they open folders or judge
FORBIDDEN = (
    *(f"securetm.auditing.{name}" for name in OPENING),
    "securetm.federation.folder",
    "securetm.federation.party.party",
    "securetm.federation.simulation.simulation",
    "securetm.federation.sources",
    "securetm.federation.store",
    "securetm.federation.transcript",
    "securetm.runs.finished",
    "securetm.corpus",
    "securetm.resources",
)
# the class of documents, which attacks make of counts; its ways to a folder are barred below
IN_MEMORY = {"securetm.corpus.corpus.Corpus", "securetm.corpus.held_documents.HeldDocuments"}
WAYS_OUT = tuple("pathlib os io sqlite3 glob shutil subprocess tempfile importlib pkgutil gc inspect".split())


def _imports(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            named = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= set() if named <= IN_MEMORY else named | {str(node.module)}
    return found


def _offences(path: Path) -> list[str]:
    names = _imports(path)
    barred = [name for name in names if any(name == wall or name.startswith(f"{wall}.") for wall in FORBIDDEN)]
    barred += [name for name in names if name.split(".")[0] in WAYS_OUT]
    called = {node.func.id for node in ast.walk(ast.parse(path.read_text("utf-8"))) if _is_plain_call(node)}  # type: ignore[attr-defined]
    used = {node.attr for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Attribute)}
    barred += used & {"load", "save", "gathered"}
    return [*barred, *(called & {"open", "__import__", "eval", "exec", "globals", "vars"})]


def _is_plain_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def test_no_attack_reaches_a_folder_or_the_truth() -> None:
    """Nor does what attacks are made of, nor the forms that they share with the frame."""
    modules = {ATTACKS.find(name).module for name in attack_names()}
    assert {module.rpartition(".")[0] for module in modules} == {"securetm.auditing.attacks"}
    shared = [HOUSE / "auditing" / f"{name}.py" for name in ("attack", "views", "record", "verdicts")]
    own = [FOLDER / f"{module.rpartition('.')[2]}.py" for module in modules]
    for path in (*own, *shared, *(HOUSE / "auditing" / "parts").glob("*.py")):
        assert _offences(path) == [], path


def test_every_attack_says_what_it_is_and_what_it_tests_can_be_read_off_its_file() -> None:
    for name in attack_names():
        attack = attack_called(name)
        assert isinstance(attack, Attack)
        assert attack.name == name
        assert all(len(text) > 10 for text in (attack.title, attack.citation, attack.cost, attack.given)), name
        assert set(attack.needs) | set(attack.either) <= set(CHANNELS)
        assert attack.needs
        assert attack.models
        assert all(attack.measures.values())
        assert (declared(name, "allowed") is None) == (attack.allowed is None)


STRANGER = '''
"""An attack by a stranger: it names every word of the vocabulary."""

import numpy as np

from securetm.auditing.attack import Attack, RoundReconstruction, Score
from securetm.auditing.parts.reconstruction_scores import judged_words


def attack(view, effort):
    words = np.arange(len(view.vocabulary()))
    return tuple(RoundReconstruction(message.serial, message.sender, (), words) for message in view.messages("answer"))


def judge(guesses, truth):
    return Score(judged_words(guesses, truth))


ATTACK = Attack(
    name="name_everything", title="Naming every word", citation="nobody, 2020", cost="no time at all",
    given="the list of words", needs=("request", "answer", "vocabulary"), models=("prodlda",),
    measures={"named words that occur": "word", "words that are named": "word"}, attack=attack, judge=judge,
)
'''


def test_a_stranger_adds_an_attack_as_one_file(tmp_path: Path, documents_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The frame runs it beside its control, and sees that naming everything is no success: random numbers do as well."""
    (tmp_path / "name_everything.py").write_text(STRANGER)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "name_everything", None)
    del sys.modules["name_everything"]
    monkeypatch.setitem(cast("dict[str, str]", ATTACKS.own), "name_everything", "name_everything:ATTACK")
    assert "name_everything" in attack_names()
    assert attack_called("name_everything").title == "Naming every word"
    plan = write_plan(
        tmp_path / "strange.toml",
        documents_file,
        attack="name_everything",
        profiles=["open"],
        measure="words that are named",
        effort={"rounds": 1},
        batch=4,
    )
    (finding,) = audit(plan).findings
    assert finding.outcome.measured.value == 1.0
    assert finding.outcome.verdict == "not tested"
    assert "random numbers reach as much" in finding.outcome.why


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("ATTACK = Attack(name='a', allowed=limit)", True),
        ("ATTACK = Attack(name='a', allowed=None)", False),
        ("ATTACK = replace(OF_NOISE, name='a')", True),
        ("ATTACK = replace(OF_TRAFFIC, name='a')", False),
        ("ATTACK: Attack = Attack(name='a', allowed=limit)", None),
        ("ATTACK = Attack(**parts)", None),
        ("ATTACK = made('a')", None),
        ("ATTACK = replace(places.ATTACK, name='a')", None),
        ("ATTACK = Attack(name='a')\nATTACK = replace(ATTACK, allowed=limit)", None),
    ],
)
def test_what_a_file_does_not_say_plainly_is_asked_of_the_attack(
    source: str, said: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a test of an epsilon is not counted, and all of them together err more often than they say."""
    module = f"strangers_{digest([source]).hex()[:8]}"
    head = "from securetm.auditing.attacks.{0} import {1}\n"
    imports = head.format("many_runs", "MANY_RUN_EPSILON as OF_NOISE") + head.format("traffic", "TRAFFIC as OF_TRAFFIC")
    (tmp_path / f"{module}.py").write_text(imports + source)
    monkeypatch.syspath_prepend(tmp_path)
    found = attacks._said(module, "ATTACK", "allowed")
    assert (found is attacks._UNSAID) if said is None else (found is not None) == said


# ---- the view --------------------------------------------------------------------------------------------------------------


ATTACK = attack_called("gradient_inversion")
ALL = adversary()


def test_a_view_holds_the_declared_channels_and_no_other(recorded: Recorded) -> None:
    view = view_of(recorded("open", 8), ALL, ATTACK, 2)
    assert set(view.seen) == {"request", "answer", "sealed"}
    assert {message.serial for message in view.messages("answer")} == set(serials_of(recorded("open", 8), ["train"], 2))
    assert len(view.messages("answer")) == 2 * 5
    assert view.messages("sealed") == ()
    for channel in ("total", "model", "everything"):  # seen by the coordinator, but not declared by the attack
        with pytest.raises(NotGranted, match=f"channel '{channel}'"):
            view.messages(channel)
    with pytest.raises(NotGranted, match="'model'"):
        view.model_state()


@pytest.mark.parametrize("missing", ["request", "vocabulary"])
def test_a_channel_that_the_adversary_does_not_see_is_refused_before_anything_is_read(missing: str) -> None:
    blind = dataclasses.replace(ALL, sees=tuple(channel for channel in ALL.sees if channel != missing))
    with pytest.raises(NotGranted, match=missing):
        granted_to(ATTACK, blind)


def test_no_view_can_be_made_with_more_than_the_adversary_sees(recorded: Recorded) -> None:
    view = view_of(recorded("open", 8), ALL, ATTACK, 1)
    few = Adversary("party", "honest-but-curious", ("request",))
    with pytest.raises(NotGranted):
        AdversaryView(few, view.public, view.seen, view.words)
    with pytest.raises(NotGranted):
        AdversaryView(few, view.public, {"request": view.seen["request"]}, view.words)
    with pytest.raises(NotGranted):  # an answer under another name
        AdversaryView(few, view.public, {"request": view.seen["answer"]})
    with pytest.raises(NotGranted):
        AdversaryView(few, view.public, {}, weights={"weights": np.zeros(3)})


def test_a_party_meets_only_its_own_messages_and_a_reader_none(recorded: Recorded) -> None:
    folder = recorded("open", 8)
    reads = dataclasses.replace(ATTACK, needs=("request", "vocabulary"), either=())
    mine = view_of(folder, adversary("party"), reads, 3)
    assert {message.receiver for message in mine.messages("request")} == {folder.members[0]}
    reader = Adversary("model reader", "honest-but-curious", ("request", "vocabulary", "model"))
    with_model = dataclasses.replace(reads, needs=("request", "vocabulary", "model"))
    view = view_of(folder, reader, with_model, 3)
    assert view.messages("request") == ()
    assert set(view.model_state()) >= {"weights"}


def test_nothing_in_a_view_leads_to_a_folder(recorded: Recorded) -> None:
    """Every object that an attack can reach is walked: no path, no open store, no text that is a place on disk."""
    folder = recorded("masked", 25)
    view = view_of(folder, ALL, dataclasses.replace(ATTACK, needs=ALL.sees, either=()), 2)
    places = {str(folder.path), str(folder.ledgers), folder.path.parent.name}
    met = 0
    for thing in reachable(view):
        met += 1
        assert not isinstance(thing, Path | sqlite3.Connection), thing
        if isinstance(thing, str):
            assert not any(place in thing for place in places), thing
            assert not ("/" in thing and Path(thing).exists()), thing
    assert met > 500  # the walk really went through messages and settings


def test_a_run_without_content_cannot_be_audited(recorded: Recorded) -> None:
    with pytest.raises(Mistake, match="without keeping its messages"):
        view_of(recorded("open", 8, 1, with_content=False), ALL, ATTACK, 1)


def test_rounds_are_spread_from_the_first_to_the_last(recorded: Recorded) -> None:
    folder = recorded("open", 8)
    every = serials_of(folder, ["train"], 100)
    assert len(every) == 3
    assert serials_of(folder, ["train"], 2) == (every[0], every[-1])
    assert serials_of(folder, ["train"], 1) == (every[0],)
    assert set(serials_of(folder, ["train", "words", "frequencies"], 100)) > set(every)


def test_questions_are_read_with_their_terms(recorded: Recorded) -> None:
    for profile, grid in (("open", False), ("masked", True)):
        known = questions_in(view_of(recorded(profile, 25), ALL, ATTACK, 3))
        assert [one.question for one in known.values()] == ["train"] * 3
        assert [one.number for one in known.values()] == [0, 1, 2]
        assert all((one.terms.grid > 0) is grid for one in known.values())
