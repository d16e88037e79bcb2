"""What an attack can reach: the channels of its adversary that it declared, and no folder, store or document."""

from __future__ import annotations

import dataclasses
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from securetm.auditing.attacks import attack_called
from securetm.auditing.recorded import granted_to, serials_of, view_of
from securetm.auditing.views import AdversaryView, NotGranted, questions_in
from securetm.contracts import Adversary
from securetm.errors import Mistake

from .conftest import Recorded, adversary
from .tried import reachable

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
