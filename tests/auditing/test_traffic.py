"""Somebody who listens to encrypted connections: what lengths tell, and that nothing but lengths can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from securetm.auditing.attacks import attack_called
from securetm.auditing.attacks.traffic import FOUND, ORDERED
from securetm.auditing.judging import of_chance
from securetm.auditing.recorded import view_of
from securetm.auditing.runner import audit
from securetm.auditing.views import SIZES, AdversaryView

from .conftest import PARTIES, Recorded, adversary, texts, write_plan

LISTENER = adversary("network observer", "network_observer")
ATTACK = attack_called("traffic")


@pytest.fixture(scope="module")
def unequal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Parties with more and fewer documents, so that they have more and fewer words."""
    path = tmp_path_factory.mktemp("unequal") / "documents.csv"
    rows = [f"{text},{name}" for n, name in enumerate(PARTIES) for text in texts(20 * 2**n + 20, n, words=700)]
    path.write_text("text,party\n" + "\n".join(rows) + "\n", "utf-8")
    return path


def listened(recorded: Recorded, profile: str) -> AdversaryView:
    return view_of(recorded(profile, 25), LISTENER, ATTACK, 3)


def test_a_message_on_this_channel_is_its_length_and_nothing_else(recorded: Recorded) -> None:
    view = listened(recorded, "open")
    assert set(view.seen) == {SIZES}
    assert view.words is None
    assert view.weights is None
    sizes = view.messages(SIZES)
    assert len(sizes) >= 2 * len(PARTIES) * len({message.serial for message in sizes})
    assert all(message.content.isdigit() and int(message.content) > 30 for message in sizes)
    assert all(message.sender != message.receiver for message in sizes)  # an opened total passes between no machines


def test_lists_of_words_are_as_long_as_their_words(unequal: Path, tmp_path: Path) -> None:
    plan = write_plan(
        tmp_path / "listening.toml",
        unequal,
        attack="traffic",
        threat_model="network_observer",
        adversary="network observer",
        claim="the sizes of messages tell nothing of documents",
        measure=FOUND,
        refuted_from=0.6,
        effort={"rounds": 1},
    )
    plan.write_text(plan.read_text("utf-8").replace("rounds = 3", "rounds = 1"), "utf-8")
    found = {finding.run.profile: finding for finding in audit(plan).findings}
    assert found["open"].outcome.verdict == "refuted"
    ordered = next(measured for measured in found["open"].outcome.beside if measured.measure == ORDERED)
    assert (ordered.hits, ordered.of) == (10, 10)
    assert found["masked"].outcome.verdict == "not refuted"
    assert found["masked"].outcome.measured.value == 0.0


def test_under_masked_sums_all_parties_send_equally_much(recorded: Recorded) -> None:
    sizes = [message for message in listened(recorded, "masked").messages(SIZES) if message.sender in PARTIES]
    for serial in {message.serial for message in sizes}:
        each = {name: [m.content for m in sizes if (m.serial, m.sender) == (serial, name)] for name in PARTIES}
        assert len({tuple(sent) for sent in each.values()}) == 1


def test_the_control_has_the_same_lengths_at_other_messages(recorded: Recorded) -> None:
    view = listened(recorded, "open")
    chance = of_chance(view, 1)
    before, after = ([message.content for message in one.messages(SIZES)] for one in (view, chance))
    assert sorted(before) == sorted(after)
    assert before != after
