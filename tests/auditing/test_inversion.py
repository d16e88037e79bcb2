"""The attacks reach on real transcripts what they should, miss what they should miss, and chance reaches nothing."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from securetm.auditing.attack import Proportion, Score
from securetm.auditing.attacks import attack_called
from securetm.auditing.ground_truth import ground_truth_of
from securetm.auditing.judging import of_chance
from securetm.auditing.parts.reconstruction_scores import EXACT, LINKED, LINKS_FOUND, PRECISION, RECALL, TOGETHER, TRUE_GUESSES
from securetm.auditing.recorded import questions_of, view_of
from securetm.federation.folder import RunFolder

from .conftest import Recorded, adversary

EFFORT = {"rounds": 3, "documents": 1_000_000}  # more than masked answers, which say any number, can seem to hold together
NOTHING = 0.0


def tried(name: str, folder: RunFolder, *, chance: bool = False) -> Score:
    attack = attack_called(name)
    view = view_of(folder, adversary(), attack, EFFORT["rounds"])
    truth = ground_truth_of(folder, questions_of(folder, attack.questions, EFFORT["rounds"]).values())
    return attack.judge(attack.attack(of_chance(view, 1) if chance else view, EFFORT), truth)


def share(judged: Score, measure: str) -> float:
    worth = judged.measures[measure]
    assert isinstance(worth, Proportion)
    return worth.hits / worth.of if worth.of else NOTHING


def test_one_document_in_a_batch_is_read_exactly(recorded: Recorded) -> None:
    judged = tried("gradient_inversion", recorded("open", 1))
    assert judged.measures[EXACT] == Proportion(15, 15)
    assert [example.exact for example in judged.examples] == [True] * len(judged.examples)
    assert judged.examples[0].original == judged.examples[0].recovered


def test_the_decoder_alone_gives_a_document_away(recorded: Recorded) -> None:
    assert share(tried("decoder_inversion", recorded("open", 1)), EXACT) >= 0.95


def test_eight_documents_in_a_batch_are_told_apart(recorded: Recorded) -> None:
    judged = tried("gradient_inversion", recorded("open", 8))
    assert judged.measures[EXACT] == dataclasses.replace(judged.measures[EXACT], of=3 * 5 * 8)  # type: ignore[type-var]
    assert share(judged, EXACT) >= 0.95
    assert share(judged, TRUE_GUESSES) >= 0.95


@pytest.mark.parametrize("batch", [1, 8, 20, 60])
def test_the_words_of_a_batch_are_known_exactly(recorded: Recorded, batch: int) -> None:
    judged = tried("gradient_inversion", recorded("open", batch))
    assert share(judged, PRECISION) == share(judged, RECALL) == 1.0


@pytest.mark.parametrize("batch", [1, 8])
def test_random_vectors_give_nothing_away(recorded: Recorded, batch: int) -> None:
    for name in ("gradient_inversion", "decoder_inversion"):
        assert share(tried(name, recorded("open", batch), chance=True), EXACT) == NOTHING


def test_a_masked_vector_is_no_better_than_chance(recorded: Recorded) -> None:
    """The control stands beside: on random numbers the same attack names the same words, namely all."""
    folder = recorded("masked", 25)
    masked, chance = (tried("gradient_inversion", folder, chance=chance) for chance in (False, True))
    assert share(masked, EXACT) == share(chance, EXACT) == NOTHING
    assert masked.measures[PRECISION] == chance.measures[PRECISION]
    assert masked.measures[RECALL] == chance.measures[RECALL]
    assert share(masked, PRECISION) < 0.5


def test_the_opened_sum_of_masked_vectors_still_shows_words_and_links(recorded: Recorded) -> None:
    judged = tried("sum_inversion", recorded("masked", 25))
    assert share(judged, PRECISION) == 1.0
    assert share(judged, RECALL) >= 0.99
    assert share(judged, LINKED) >= 0.9
    assert share(judged, LINKS_FOUND) >= 0.9
    assert share(judged, TOGETHER) > 0.2
    smaller = tried("sum_inversion", recorded("open", 20))
    assert any(example.recovered.startswith("of one document: ") for example in smaller.examples)


def test_a_masked_sum_of_a_hundred_documents_gives_them_away_to_a_wide_model(recorded: Recorded) -> None:
    """The profile's least number of documents is no protection by itself: it goes by the width of the first layer."""
    wide = tried("sum_inversion", recorded("masked", 25, hidden=400))
    narrow = tried("sum_inversion", recorded("masked", 25))
    assert share(narrow, EXACT) == NOTHING
    assert share(wide, EXACT) > 0.3


def test_the_control_changes_vectors_and_nothing_else(recorded: Recorded) -> None:
    attack = attack_called("gradient_inversion")
    for profile in ("open", "masked"):
        view = view_of(recorded(profile, 25), adversary(), attack, 2)
        drawn = of_chance(view, 5)
        assert drawn.seen["request"] == view.seen["request"]
        channel = "answer" if profile == "open" else "sealed"
        changed = 0
        for before, after in zip(view.seen[channel], drawn.seen[channel], strict=True):
            assert len(after.content) == len(before.content)
            assert (after.serial, after.sender) == (before.serial, before.sender)
            changed += after.content != before.content
        assert changed == 2 * 5
        assert of_chance(view, 5).seen[channel] == drawn.seen[channel]
        assert of_chance(view, 6).seen[channel] != drawn.seen[channel]


def test_the_judge_knows_what_took_part(recorded: Recorded) -> None:
    """Each batch has the size that the answers say, and is of the documents that its party trains on."""
    folder = recorded("open", 20)
    attack = attack_called("gradient_inversion")
    truth = ground_truth_of(folder, questions_of(folder, attack.questions, 3).values())
    assert {counts.shape[0] for counts in truth.batches.values()} == {20}
    for name in folder.members:
        trained_on = {row.tobytes() for row in truth.held[name].toarray().astype(np.int64)}
        drawn = [counts for (_, party), counts in truth.batches.items() if party == name]
        assert len(drawn) == 3
        assert {row.tobytes() for counts in drawn for row in counts.toarray().astype(np.int64)} <= trained_on
    serial = next(iter(truth.batches))[0]
    assert truth.batch(serial, "").shape == (100, len(truth.vocabulary))
