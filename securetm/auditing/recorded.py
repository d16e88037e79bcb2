"""Reads a recorded run for one adversary: its view holds the messages that it sees, and no others.

This module opens folders, so no attack may import it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from securetm.auditing.attack import Attack
from securetm.auditing.views import (
    MODEL,
    REQUEST,
    SET_UP,
    SIZES,
    TIMES,
    VOCABULARY,
    AdversaryView,
    Message,
    NotGranted,
    PublicFacts,
    RoundQuestion,
    question_in,
    questions_in,
)
from securetm.contracts import Adversary, Budget, State
from securetm.errors import Mistake
from securetm.federation.folder import RunFolder
from securetm.federation.questions import TRAIN
from securetm.federation.simulation.result import spent_by
from securetm.federation.simulation.simulation import words_of_columns
from securetm.federation.store import DamagedStore, read_arrays
from securetm.federation.transcript import Transcript
from securetm.plans.profiles import BLIND, claims_of, cohort_of
from securetm.plans.schema import CorpusChoice

MESSAGES, WORDS = "messages.sqlite", "vocabulary.txt"
PARTY, READER = "party", "model reader"  # adversaries that do not see all messages
_JUDGE = Adversary("judge", "honest-but-curious", (REQUEST, VOCABULARY))


def view_of(folder: RunFolder, adversary: Adversary, attack: Attack, rounds: int) -> AdversaryView:
    """What this adversary saw, limited to the channels that the attack declares, and to this many rounds of training."""
    granted = granted_to(attack, adversary)
    serials = serials_of(folder, attack.questions, rounds)
    if SET_UP in attack.questions:
        serials = (*range(min(dict(_asked(folder)))), *serials)
    seen = _seen(folder, adversary, [channel for channel in granted if channel not in (MODEL, VOCABULARY)], serials)
    words = (vocabulary_of if adversary.name in (PARTY, READER) else columns_of)(folder) if VOCABULARY in granted else None
    weights = read_arrays(folder.model, bare=True)[0] if MODEL in granted else None
    return AdversaryView(adversary, public_facts(folder), seen, words, weights)


def questions_of(folder: RunFolder, questions: Collection[str], rounds: int) -> dict[int, RoundQuestion]:
    """The questions of these rounds, for the judge."""
    seen = _seen(folder, _JUDGE, (REQUEST,), serials_of(folder, questions, rounds))
    return questions_in(AdversaryView(_JUDGE, public_facts(folder), seen, vocabulary_of(folder)))


def states_of(folder: RunFolder, serials: Collection[int]) -> dict[tuple[int, str], State]:
    """The state that each party got in each of these rounds, for the judge. A matched model sends each party another one."""
    found = {}
    for message in _seen(folder, _JUDGE, (REQUEST,), serials)[REQUEST]:
        if (ask := question_in(message.content)) is not None:
            found[message.serial, message.receiver] = ask.state
    return found


def granted_to(attack: Attack, adversary: Adversary) -> tuple[str, ...]:
    """The channels that the attack reads and the adversary sees. Refuses an attack that needs another one."""
    for channel in attack.needs:
        if channel not in adversary.sees:
            raise NotGranted(channel, adversary.name)
    some = tuple(channel for channel in attack.either if channel in adversary.sees)
    if attack.either and not some:
        raise NotGranted(" or ".join(attack.either), adversary.name)
    return (*attack.needs, *some)


def public_facts(folder: RunFolder) -> PublicFacts:
    """How the run was set up, without the paths of its documents, lists and profile."""
    plan, file = folder.agreement.plan, replace(folder.agreement.file, path=None)
    words = replace(plan.vocabulary, file="a public list" if plan.vocabulary.file else "")
    tokeniser = replace(plan.tokeniser, stop_words="none")
    public = replace(plan, corpus=CorpusChoice(), vocabulary=words, tokeniser=tokeniser)
    agreement = replace(folder.agreement, plan=public, file=file, words=None, stop_words="none", inputs=())
    return PublicFacts(folder.members, agreement)


def serials_of(folder: RunFolder, questions: Collection[str], rounds: int) -> tuple[int, ...]:
    """The rounds of these questions; of the training at most this many, spread evenly from the first to the last."""
    asked = dict(_asked(folder))
    found = [serial for serial, question in asked.items() if question in questions and question != TRAIN]
    training = [serial for serial, question in asked.items() if question == TRAIN]
    if TRAIN in questions and training:
        places = np.unique(np.linspace(0, len(training) - 1, min(rounds, len(training))).round().astype(int))
        found += [training[place] for place in places]
    return tuple(sorted(found))


def _asked(folder: RunFolder) -> Iterator[tuple[int, str]]:
    transcript = _transcript(folder)
    numbers = [int(serial) for (serial,) in transcript.rows("SELECT DISTINCT serial FROM messages ORDER BY serial")]
    select = "SELECT content FROM messages WHERE serial = ? AND channel = ? ORDER BY at"
    for serial in numbers:
        questions = (question_in(bytes(content)) for (content,) in transcript.rows(select, serial, REQUEST))
        if (ask := next((found for found in questions if found is not None), None)) is not None:
            yield serial, ask.question
    transcript.close()


def check_recorded(folder: RunFolder) -> None:
    """Refuses a run with missing messages, words or model, before its baseline is trained."""
    if not serials_of(folder, (TRAIN,), 1):
        raise DamagedStore(str(folder.path / "transcript" / MESSAGES), "it holds no round of training")
    for path in (folder.coordinator / WORDS, folder.model):
        _check_there(path)


def vocabulary_of(folder: RunFolder) -> tuple[str, ...]:
    """The agreed list of words; where they are hidden, as the parties know them."""
    return words_of_columns(folder) if folder.agreement.plan.vocabulary.source == BLIND else columns_of(folder)


def columns_of(folder: RunFolder) -> tuple[str, ...]:
    """The names of the columns as the coordinator knows them: the agreed list, unless words are hidden."""
    return tuple((folder.coordinator / WORDS).read_text("utf-8").split("\n"))


def _check_there(path: Path) -> None:
    if not path.is_file() or not path.stat().st_size:
        raise DamagedStore(str(path), "it is not there, or empty")


def _transcript(folder: RunFolder) -> Transcript:
    if not folder.with_content:
        raise Mistake(
            "{path} was run without keeping its messages",
            hint="repeat the run with `securetm run --record`: an audit reads the messages that really passed",
            path=str(folder.path),
        )
    _check_there(folder.path / "transcript" / MESSAGES)  # opening it would create an empty one
    return Transcript(folder.path / "transcript", with_content=True)


def _seen(
    folder: RunFolder, adversary: Adversary, channels: Collection[str], serials: Collection[int]
) -> dict[str, tuple[Message, ...]]:
    """Messages by channel. Equal contents, such as a question to all parties, share memory."""
    found: dict[str, list[Message]] = {channel: [] for channel in channels}
    kept: dict[bytes, bytes] = {}
    transcript = _transcript(folder)
    for serial in serials:
        select = "SELECT channel, sender, receiver, content, seconds FROM messages LEFT JOIN arrivals USING (at)"
        for channel, sender, receiver, content, after in transcript.rows(f"{select} WHERE serial = ? ORDER BY at", serial):
            # the adversary "party" is the first one and sees its own messages; a model reader sees none
            if adversary.name == READER or (adversary.name == PARTY and folder.members[0] not in (sender, receiver)):
                continue
            if channel in found:
                found[channel].append(Message(serial, channel, sender, receiver, kept.setdefault(content, content)))
            if SIZES in found and sender != receiver:
                found[SIZES].append(Message(serial, SIZES, sender, receiver, str(len(content)).encode()))
            if TIMES in found and after is not None:
                found[TIMES].append(Message(serial, TIMES, sender, receiver, repr(after).encode()))
    transcript.close()
    return {channel: tuple(messages) for channel, messages in found.items()}


def claimed_by(folder: RunFolder) -> Budget | None:
    """The budget with what the party spent that spent most in this run alone; None if the profile has no budget."""
    budget = folder.agreement.budget
    if budget is None:
        return None
    return replace(budget, epsilon=max(spent_by(folder, name)["own"]["epsilon"] for name in folder.members))


def claims(folder: RunFolder, what: str, against: str, helpers: int = 0) -> bool:
    """Whether this run's profile, or its hidden words, make this claim for a cohort of its size and so many helpers."""
    profile, hides_words = folder.agreement.profile, folder.agreement.plan.vocabulary.is_hidden
    made = claims_of(profile, cohort_of(profile, folder.members), hides_words=hides_words)
    return any((one.what, one.against) == (what, against) and one.colluding >= helpers for one in made)
