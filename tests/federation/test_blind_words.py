"""Runs over words that the coordinator never sees: the model is that of a list, and no word is on any channel of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from securetm.corpus.corpus import Corpus
from securetm.entropy import OperatingSystem
from securetm.errors import BadSetting, Failed, Mistake
from securetm.federation.budget.forecast import check_words, needed_by
from securetm.federation.coordinator.coordinator import Coordinator, Trained
from securetm.federation.coordinator.hidden_words import TOLD, take_words, told_words
from securetm.federation.coordinator.rounds import Attendance, NewSessionWanted, PartyRefused
from securetm.federation.folder import RunFolder, begin
from securetm.federation.questions import BUCKET_SUMS, BUCKETS, MARKS, TRAIN, WORDS_KEY, Questions, share_identity
from securetm.federation.refusal_errors import BadState
from securetm.federation.release import released_model
from securetm.federation.shared_words import NAME, SHARE_KEY, SHARE_NAMES, about_names
from securetm.federation.simulation.simulation import InProcess, make_party
from securetm.federation.soundness import check_answerable
from securetm.federation.store import CoordinatorStore, read_arrays
from securetm.federation.transcript import Watch
from securetm.federation.wire import wire
from securetm.models.questions.hidden_words import KEY, OPEN, PARTS, STAGE, cell_name, hashed, opened
from securetm.plans.agreement import agree
from securetm.plans.schema import Plan

from ..quick_part import quick
from .conftest import SUBJECTS, small_plan

RARE = "zyzzyvacanary"  # of one party
PROFILES = ("masked", "bfv")


class Killed(Exception):
    """The coordinator's end, in the middle of what it did."""


@dataclass
class Heard:
    """The real parties, and everything that the coordinator sees and says."""

    inside: InProcess
    seen: list[bytes] = field(default_factory=list)
    dies_before: str = ""  # the question, or other message, before which the coordinator is killed
    shared: list[str] = field(default_factory=list)  # the purposes of exchanges among the parties
    away: str = ""  # a party that comes when the training begins

    def ask(self, requests: Mapping[str, bytes], most: int) -> Iterator[tuple[str, bytes | memoryview]]:
        body = wire.unpack_request(next(iter(requests.values())))[1]
        if self.dies_before == (body.question if isinstance(body, wire.Ask) else type(body).__name__):
            raise Killed()
        if isinstance(body, wire.Share):
            self.shared.append(body.purpose)
        self.seen += requests.values()
        if isinstance(body, wire.Ask) and body.question == TRAIN:
            self.away = ""
        for name, reply in self.inside.ask({name: asked for name, asked in requests.items() if name != self.away}, most):
            self.seen.append(bytes(reply))
            yield name, reply

    def present(self) -> frozenset[str]:
        return self.inside.present() - {self.away}

    def close(self) -> None:
        self.inside.close()


def blind(**more: object) -> Plan:
    given = {"vocabulary__source": "blind", "profile": "masked", "training__rounds": 3, **more}
    return small_plan(**given) if "model" in given else small_plan(**given, model__batch=34)


@pytest.fixture
def with_rare(five: Mapping[str, Corpus]) -> Mapping[str, Corpus]:
    south = five["south"]
    texts = texts_of(south)[:40]
    return {**five, "south": Corpus.from_strings([*texts, *[f"court {RARE} judge"] * 12], name="south")}


def coordinated(folder: RunFolder, parties: Heard) -> Trained:
    store = CoordinatorStore(folder.coordinator)
    made = folder.members, folder.agreement, parties, store, OperatingSystem(), Watch(), folder.keys
    try:
        return Coordinator(*made, holds=folder.holds).run()
    finally:
        store.close()


def parties_of(folder: RunFolder, **more: object) -> Heard:
    return Heard(InProcess({name: make_party(folder, name) for name in folder.members}), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("profile", quick(PROFILES, "bfv"))
def test_a_blind_model_is_bit_for_bit_that_of_the_same_list(
    profile: str, with_rare: Mapping[str, Corpus], tmp_path: Path
) -> None:
    """A list is in the order of its words, so the same documents are written once more in the names of the columns."""
    folder = begin(tmp_path / "blind", blind(profile=profile), with_rare)
    parties = parties_of(folder)
    trained = coordinated(folder, parties)
    words = (folder.party("north") / "vocabulary.txt").read_text("utf-8").split("\n")
    parties.close()
    assert all((folder.party(name) / "vocabulary.txt").read_text("utf-8").split("\n") == words for name in folder.members)
    everywhere = {word for corpus in with_rare.values() for word in corpus.vocabulary}
    assert RARE not in words
    assert len(words) == len(trained.vocabulary) > 25
    assert set(words) <= everywhere
    column = dict(zip(words, trained.vocabulary, strict=True))
    renamed = {
        name: corpus.renamed([column.get(word, word) for word in corpus.vocabulary]).replace(keys=corpus.keys)
        for name, corpus in with_rare.items()
    }
    listed = tmp_path / "words.txt"
    listed.write_text("\n".join(trained.vocabulary), "utf-8")
    public = {"vocabulary__source": "file", "vocabulary__file": str(listed), "origins__vocabulary": "made up"}
    other = begin(tmp_path / "listed", blind(profile=profile, **public), renamed)
    parties = parties_of(other)
    same = coordinated(other, parties)
    parties.close()
    assert same.vocabulary == trained.vocabulary
    for name in folder.members:
        learned, listed = (read_arrays(released_model(one.party(name)), bare=True)[0] for one in (folder, other))
        assert learned.keys() == listed.keys()
        assert all(np.array_equal(learned[array], listed[array]) for array in learned if array != "words")


@pytest.mark.parametrize("profile", quick(PROFILES, "masked"))
def test_no_channel_of_the_coordinator_holds_a_word_or_a_hash_that_a_guess_could_check(
    profile: str, with_rare: Mapping[str, Corpus], tmp_path: Path
) -> None:
    folder = begin(tmp_path / "blind", blind(profile=profile), with_rare, with_content=True)
    parties = parties_of(folder)
    trained = coordinated(folder, parties)
    key = parties.inside.parties["north"].questions.key
    parties.close()
    files = [path.read_bytes() for path in folder.coordinator.rglob("*") if path.is_file()]
    seen = b"\n".join([*parties.seen, *files])
    spoken = {*SUBJECTS["west"], "judge"}  # words of this trade stand in names of settings and arrays
    words = sorted({word for corpus in with_rare.values() for word in corpus.vocabulary if len(word) > 4} - spoken)
    assert len(words) > 15
    for word in words:
        for guess in (word.encode(), *hashes_of(word)):
            assert guess not in seen, word
    assert key not in seen
    columns = set(trained.vocabulary)
    if profile == "bfv":  # not even where a column lies
        assert trained.vocabulary == tuple(map(cell_name, range(len(columns))))
        return
    everybody = hashed(tuple(words), key, Questions(folder.agreement).buckets)
    assert sum(cell_name(cell) in columns for cell in everybody.cells) > len(columns) / 4  # with the key all of them are read
    hits = [
        sum(
            cell_name(cell) in columns
            for cell in hashed(tuple(words), bytes([n]) * KEY, Questions(folder.agreement).buckets).cells
        )
        for n in range(50)
    ]
    assert sum(hits) <= 5  # by chance one of 300 guesses under 50 wrong keys


def hashes_of(word: str) -> Iterator[bytes]:
    """Hashes of a word alone, whole and cut as short as could still be looked for."""
    for made in (hashlib.sha256(word.encode()), hashlib.blake2b(word.encode(), digest_size=24), hashlib.md5(word.encode())):
        yield made.digest()[:8]
        yield made.hexdigest()[:16].encode()


KILLED = [*product((BUCKETS, MARKS, "Adopt", TRAIN), PROFILES)]


@pytest.mark.parametrize(("question", "profile"), quick(KILLED, (MARKS, "masked"), (TRAIN, "bfv")))
def test_a_coordinator_that_was_killed_goes_on_with_the_same_key_and_columns(
    question: str, profile: str, five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    folder = begin(tmp_path / "run", blind(profile=profile), five)
    parties = parties_of(folder, dies_before=question)
    with pytest.raises(Killed):
        coordinated(folder, parties)
    key = parties.inside.parties["north"].store.get(WORDS_KEY)
    parties.close()
    parties = parties_of(folder)  # started anew, as well
    trained = coordinated(folder, parties)
    assert key == parties.inside.parties["south"].store.get(WORDS_KEY)
    parties.close()
    assert trained.rounds == 3
    assert len(trained.vocabulary) > 25


@pytest.mark.parametrize(("profile", "sessions"), quick([("masked", 2), ("bfv", 1)], ("masked", 2)))
def test_who_missed_the_names_of_columns_is_left_out_and_the_others_go_on(
    profile: str, sessions: int, five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    """No other party could tell it the names: they were sealed in an exchange that is over."""
    folder = begin(tmp_path / "run", blind(profile=profile), five)
    parties, store = parties_of(folder, away="north"), CoordinatorStore(folder.coordinator)
    made = folder.members, folder.agreement, parties, store, OperatingSystem(), Watch(), folder.keys
    for begun in range(1, 10):  # noqa: B007 - the number of sessions is looked at below
        try:
            trained = Coordinator(*made, Attendance(fewest=4), holds=folder.holds).run()
            break
        except NewSessionWanted:  # it came, and is invited
            continue
    assert begun == sessions
    assert trained.rounds == 3
    refused = {(party, name) for party, name in store.rows("SELECT party, name FROM refusals")}
    parties.close()
    store.close()
    assert refused <= {("north", "NotInvited"), ("north", "BadState")}
    assert all((folder.party(name) / "vocabulary.txt").exists() for name in folder.members[1:])


def test_the_coordinator_is_told_the_words_at_the_end_where_the_plan_says_so(
    five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    folder = begin(tmp_path / "run", blind(vocabulary__told_at_the_end=True), five)
    parties = parties_of(folder)
    trained = coordinated(folder, parties)
    words = (folder.party("north") / "vocabulary.txt").read_text("utf-8").split("\n")
    assert list(trained.vocabulary) == words
    store = CoordinatorStore(folder.coordinator)
    made = folder.members, folder.agreement, parties, store, OperatingSystem(), Watch(), folder.keys
    again = Coordinator(*made, holds=folder.holds)
    before = again.ended_before()
    assert before is not None
    assert before.vocabulary == trained.vocabulary  # also after a new start
    again.questions.adopt(tuple(map(cell_name, range(len(words)))))
    for told in (("one", "other"), (*words[:-1], words[0]), (*words[1:], words[0])):
        again.store.put(TOLD, json.dumps(words).encode())
        take_words(again, "west", ("\n".join(told).encode(),))
        assert told_words(again, ("0000001",)) == ("0000001",)  # of parties that tell different ones none is believed
    take_words(again, "north", ("\n".join(words).encode(),))
    assert told_words(again, ("0000001",)) == ("0000001",)
    assert [name for (name,) in store.rows("SELECT name FROM refusals")] == ["NamesDisagree"] * 4
    parties.close()
    store.close()


@pytest.mark.parametrize(
    "more",
    [
        {"vocabulary__source": "joint"},
        {"profile": "bfv"},
        {"profile": "dp-distributed", "model": {"name": "moments", "n_topics": 2}, "privacy": {"epsilon": 3.0}},
    ],
)
def test_words_are_told_only_where_the_coordinator_could_use_all_of_them(more: dict[str, object]) -> None:
    with pytest.raises(BadSetting, match="told_at_the_end"):
        blind(vocabulary__told_at_the_end=True, **more)


def test_a_plan_with_room_for_hardly_a_word_can_be_answered() -> None:
    """It is tried with more words than it has room for."""
    check_answerable(agree(blind(vocabulary__max_words=2, vocabulary__most_candidates=2)), 5)


# ---- one party, and a coordinator that lies -----------------------------------------------------------------------


@dataclass
class Alone:
    """One party of a run in which the key is shared already."""

    folder: RunFolder
    parties: Heard

    def says(self, body: wire.Body, name: str = "north") -> wire.Outcome:
        session = self.parties.inside.parties[name].session
        assert session is not None
        return wire.unpack_reply(self.parties.inside.parties[name].handle(wire.pack_request(session.identity, body)), name)[1]

    def share(self, purpose: str, state: Mapping[str, np.ndarray]) -> wire.Outcome:
        session = self.parties.inside.parties["north"].session
        assert session is not None
        return self.says(wire.Share(share_identity(session.identity, purpose, state), purpose, dict(state)))

    def reason(self) -> str:
        rows = self.parties.inside.parties["north"].store.rows("SELECT name, reason FROM refusals ORDER BY at")
        return " ".join(rows[-1])


@pytest.fixture
def alone(five: Mapping[str, Corpus], tmp_path: Path) -> Iterator[Alone]:
    folder = begin(tmp_path / "run", blind(), five)
    parties = parties_of(folder, dies_before=BUCKETS)
    with pytest.raises(Killed):
        coordinated(folder, parties)
    yield Alone(folder, parties)
    parties.close()


def columns(*cells: int, documents: int = 5, parties: int = 2) -> dict[str, np.ndarray]:
    totals = np.tile([documents, parties, 0, 0], (len(cells), 1))
    return about_names(np.array(cells), totals)


def test_bad_exchanges_are_refused_by_name(alone: Alone) -> None:
    most = Questions(alone.folder.agreement).buckets * PARTS
    many = columns(*range(2001))
    cases = {
        "no such exchange": ("secrets", {}),
        "no such form": (SHARE_NAMES, {}),
        "out of order": (SHARE_NAMES, columns(5, 4)),
        "out of order, or": (SHARE_NAMES, columns(4, 4)),
        "there are no such": (SHARE_NAMES, columns(4, most)),
        "are no such ones": (SHARE_NAMES, columns(-1, 4)),
        "fewer documents": (SHARE_NAMES, columns(4, 5, documents=1)),
        "at fewer parties": (SHARE_NAMES, columns(4, 5, parties=1)),
        "the columns have no such form": (SHARE_NAMES, many),
        "no such exchange.": (SHARE_KEY, columns(4)),
    }
    for reason, (purpose, state) in cases.items():
        assert isinstance(said := alone.share(purpose, state), wire.Refusal), reason
        assert said.name == BadState.__name__
        assert reason.rstrip(".") in alone.reason()
    assert alone.says(wire.Share(bytes(32), SHARE_NAMES, columns(4))) == wire.Refusal("WrongRound")
    assert isinstance(alone.share(SHARE_NAMES, columns(4, 5)), wire.Accepted)
    assert isinstance(alone.share(SHARE_NAMES, columns(4, 5)), wire.Accepted)
    assert alone.share(SHARE_NAMES, columns(4, 6)) == wire.Refusal("AnotherList")


def test_hostile_lists_of_columns_are_refused_by_name_before_words_are_made_of_them(alone: Alone) -> None:
    assert isinstance(alone.share(SHARE_NAMES, columns(4, 5)), wire.Accepted)
    hostile = {
        "a million columns": (b"\n".join(b"%07x" % n for n in range(10**6)), "Malformed", "bytes"),
        "more than the plan has": (b"\n".join(b"%07x" % n for n in range(2001)), "BadState", "longer than the plan"),
        "one word of a megabyte": (b"a" * (1 << 20), "Malformed", "bytes"),
        "one of ten kilobytes": (b"a" * 10_000, "BadWordList", ""),
        "no text": (b"\xff\xfe\x00" * 9, "BadWordList", ""),
        "empty": (b"", "BadState", ""),
        "words": (b"court\njudge", "BadState", "not those that the parties named"),
        "columns nobody named": (b"0000004\n0000005", "BadState", "not those that the parties named"),
    }
    for what, (words, name, why) in hostile.items():
        assert alone.says(wire.Adopt(words, False)) == wire.Refusal(name), what
        assert why in alone.reason(), what


def test_a_party_without_the_key_answers_nothing_about_words(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    folder = begin(tmp_path / "run", blind(), five)
    parties = parties_of(folder)
    store = CoordinatorStore(folder.coordinator)
    made = folder.members, folder.agreement, parties, store, OperatingSystem(), Watch(), folder.keys
    coordinator = Coordinator(*made, holds=folder.holds)
    coordinator.invite()
    for question, about in ((BUCKETS, {}), (MARKS, {OPEN: np.arange(4, dtype=np.int32)})):
        with pytest.raises(PartyRefused, match="BadState"):
            coordinator.ask(question, about)
    parties.close()
    store.close()


def test_another_key_is_refused_where_one_is_kept(alone: Alone) -> None:
    north = alone.parties.inside.parties["north"]
    before = north.questions.key
    for name, party in alone.parties.inside.parties.items():
        if name != "north":
            party.store.put(WORDS_KEY, bytes(KEY))
            party.questions.key = bytes(KEY)
    alone.parties.dies_before = ""
    with pytest.raises(PartyRefused, match="AnotherKey"):
        coordinated(alone.folder, alone.parties)
    assert north.questions.key == before == north.store.get(WORDS_KEY)


@pytest.mark.slow
def test_names_that_the_sums_do_not_bear_out_count_as_none(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """A party that lies about names can name no column: the marks of another word do not fit."""
    from securetm.federation.party import hidden_words

    folder = begin(tmp_path / "run", blind(), five)
    parties = parties_of(folder)
    honest = hidden_words.names_told

    def lies(own: object, found: object) -> bytes:
        told = honest(own, found)  # type: ignore[arg-type]
        if getattr(own, "name", "") != "west":
            return told
        return b"".join(bytes((5,)) + b"poison".ljust(NAME - 1, b"\0") for _ in range(len(told) // NAME))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hidden_words, "names_told", lies)
        trained = coordinated(folder, parties)
    parties.close()
    words = (folder.party("north") / "vocabulary.txt").read_text("utf-8").split("\n")
    assert "poiso" not in words
    assert len(words) == len(trained.vocabulary) > 20


def test_states_of_later_sums_are_checked() -> None:
    questions = Questions(agree(noised()))
    buckets = questions.buckets
    good = opened(np.arange(5), buckets, 1)
    assert questions.make(BUCKET_SUMS, good).terms.size == 5
    assert questions.make(BUCKET_SUMS, opened(np.arange(5), buckets, 2)).terms.size == 5 * PARTS
    for bad in (
        {OPEN: good[OPEN]},
        {**good, STAGE: np.array([0], np.int64)},
        {**good, STAGE: np.array([3], np.int64)},
        {**good, OPEN: good[OPEN][:-1]},
        {"other": good[OPEN], STAGE: good[STAGE]},
        opened(np.arange(0), buckets, 1),
    ):
        with pytest.raises(BadState):
            questions.make(BUCKET_SUMS, bad)


def test_behind_noise_parties_find_their_own_words_and_tell_nobody(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    code = [f"{RARE} river lake", f"{RARE} boat"] * 60  # a word on no public list
    folder = begin(tmp_path / "run", noised(), {**five, "north": Corpus.from_strings(code, name="north")})
    parties = parties_of(folder)
    trained = coordinated(folder, parties)
    shown = [(folder.party(name) / "vocabulary.txt").read_text("utf-8").split("\n") for name in folder.members]
    own = parties.inside.parties["south"].documents.train
    parties.close()
    assert own is not None
    assert own.vocabulary == trained.vocabulary
    assert own.lengths().sum() > 0
    assert "court" in shown[1]
    place = shown[0].index(RARE)
    assert [words[place] for words in shown[1:]] == [f"#{trained.vocabulary[place]}"] * 4
    assert parties.shared == [SHARE_KEY]


def texts_of(corpus: Corpus) -> list[str]:
    return [" ".join(np.repeat(corpus.vocabulary, row.toarray().ravel())) for row in corpus.counts]


def test_too_few_documents_are_refused_before_anything_is_spent(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    folder = begin(tmp_path / "run", noised(0.5), five)
    with pytest.raises(Mistake, match="no word can be found"):
        check_words(folder.agreement, five)
    agreement = folder.agreement
    joint = replace(agreement, plan=replace(agreement.plan, vocabulary=replace(agreement.plan.vocabulary, source="joint")))
    hidden, listed = needed_by(agreement, 5), needed_by(joint, 5)
    assert hidden is not None
    assert listed is not None
    assert listed.threshold < hidden.threshold < 2 * listed.threshold  # more cells can stand out by chance


def test_too_few_columns_end_a_run_before_the_rest_is_spent(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = noised(60.0)
    plan = replace(plan, model=replace(plan.model, settings={**plan.model.settings, "n_topics": 50}))
    folder = begin(tmp_path / "run", plan, five)
    parties = parties_of(folder)
    with pytest.raises(Failed, match="too few words: the selection found"):
        coordinated(folder, parties)
    assert not (folder.coordinator / "vocabulary.txt").exists()
    parties.close()


def noised(epsilon: float = 60.0, **more: object) -> Plan:
    """With so little noise that words of a few hundred documents are found."""
    model = {"model": {"name": "moments", "n_topics": 2}, "privacy": {"epsilon": epsilon}}
    return blind(profile="dp-distributed", training__rounds=1, **model, **more)


def test_behind_noise_a_word_of_almost_all_documents_is_left_out_where_their_number_is_told(
    five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    everywhere = {name: Corpus.from_strings(["matter " + text for text in texts_of(one)]) for name, one in five.items()}
    told = {"documents": sum(map(len, everywhere.values()))}
    for share, documents, there in ((0.5, told, False), (0.5, {}, True)):
        plan = noised(vocabulary__max_share=share, **{f"training__{name}": number for name, number in documents.items()})
        folder = begin(tmp_path / f"run-{share}-{bool(documents)}", plan, everywhere)
        parties = parties_of(folder)
        coordinated(folder, parties)
        shown = (folder.party("south") / "vocabulary.txt").read_text("utf-8").split("\n")
        parties.close()
        assert ("matter" in shown) is there, (share, documents)
        assert "court" in shown
