"""A corpus keeps its promises whatever is done to it: order, sentences, keys, persons, and dealing out to parties."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from securetm.corpus.corpus import Corpus
from securetm.corpus.document_names import content_digests, content_keys, document_keys, mixed, names_of_counts
from securetm.corpus.given_texts import OtherLanguage, language_seen
from securetm.corpus.partitions import by_column, dirichlet, equal
from securetm.corpus.readers import read_corpus
from securetm.corpus.tokeniser import Tokeniser
from securetm.errors import BadSetting, Mistake

from .generated import WORDS, check, corpora, sentences_of, words_of


@given(corpora(), st.data())
def test_select_takes_whole_documents(corpus: Corpus, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(corpus) - 1))) if len(corpus) else []
    chosen = corpus.select(np.array(rows, dtype=np.int64))
    check(chosen)
    whole = sentences_of(corpus)
    assert sentences_of(chosen) == [whole[row] for row in rows]
    assert chosen.keys.tolist() == [corpus.keys[row] for row in rows]
    assert chosen.persons.tolist() == [row // 2 for row in rows]
    assert chosen.embeddings.shape == (len(rows), 2)


@given(corpora())
def test_select_takes_masks_and_negative_rows(corpus: Corpus) -> None:
    mask = np.arange(len(corpus)) % 2 == 0
    assert corpus.select(mask).keys.tolist() == corpus.keys[mask].tolist()
    if len(corpus):
        assert corpus.select(np.array([-1])).keys[0] == corpus.keys[-1]
    with pytest.raises(Mistake, match="are needed"):
        corpus.select(np.array([len(corpus)]))


@given(corpora(), st.lists(st.sampled_from((*WORDS, "unknown")), unique=True))
def test_project_keeps_documents_order_and_sentences(corpus: Corpus, vocabulary: list[str]) -> None:
    projected = corpus.project(vocabulary)
    check(projected)
    assert projected.vocabulary == tuple(vocabulary)
    assert projected.keys.tolist() == corpus.keys.tolist()
    kept = [[[w for w in s if w in vocabulary] for s in d] for d in sentences_of(corpus)]
    assert sentences_of(projected) == [[s for s in d if s] for d in kept]


@given(corpora("left"), corpora("right"))
def test_concat_is_one_after_the_other(left: Corpus, right: Corpus) -> None:
    both = Corpus.concat([left, right])
    check(both)
    assert sentences_of(both) == sentences_of(left) + sentences_of(right)
    assert both.vocabulary == tuple(sorted({*left.vocabulary, *right.vocabulary}))
    assert both.keys.tolist() == [*left.keys, *right.keys]
    here, there = both.persons[: len(left)], both.persons[len(left) :]
    assert not set(here) & set(there)  # two numberings are different people
    assert here.tolist() == left.persons.tolist()
    assert np.diff(there).tolist() == np.diff(right.persons).tolist()


@given(corpora(least=2))
def test_concat_undoes_a_split_and_people_stay_one(corpus: Corpus) -> None:
    parts = [corpus.select(np.arange(0, len(corpus), 2)), corpus.select(np.arange(1, len(corpus), 2))]
    again = Corpus.concat(parts).project(corpus.vocabulary)
    order = np.argsort(np.concatenate([np.arange(0, len(corpus), 2), np.arange(1, len(corpus), 2)]))
    assert sentences_of(again.select(order)) == sentences_of(corpus)
    assert again.persons[order].tolist() == corpus.persons.tolist()


def test_concat_gives_those_without_a_person_one_each() -> None:
    named = Corpus.from_strings(["wing wing", "tail"], name="named", persons=["ann", "ann"])
    nameless = Corpus.from_strings(["hoof", "horn"], name="nameless")
    persons = Corpus.concat([named, nameless]).persons
    assert persons is not None
    assert persons[0] == persons[1]
    assert len(set(persons.tolist())) == 3


def test_concat_refuses_the_same_document_twice() -> None:
    corpus = Corpus.from_strings(["wing", "tail"])
    with pytest.raises(Mistake, match="2 documents"):
        Corpus.concat([corpus, corpus])
    assert len(Corpus.concat([corpus, corpus.rekeyed("other")])) == 4


def test_concat_refuses_half_known_columns() -> None:
    ordered = Corpus.from_strings(["wing"], name="ordered")
    counted = Corpus.from_counts([[1]], ["wing"])
    with pytest.raises(Mistake, match="tokens"):
        Corpus.concat([ordered, counted])
    narrow = Corpus.from_strings(["wing"], name="narrow", embeddings=[[1.0]])
    wide = Corpus.from_strings(["wing"], name="wide", embeddings=[[1.0, 2.0]])
    with pytest.raises(Mistake, match="embeddings"):
        Corpus.concat([narrow, wide])
    assert len(Corpus.concat([])) == 0


@given(corpora(), st.integers())
def test_halves_share_every_word_out(corpus: Corpus, seed: int) -> None:
    seen, unseen = corpus.halves(seed)
    check(seen)
    check(unseen)
    assert seen.keys.tolist() == unseen.keys.tolist() == corpus.keys.tolist()
    assert (seen.counts + unseen.counts - corpus.counts).nnz == 0
    assert ((seen.lengths() - unseen.lengths()) == corpus.lengths() % 2).all()


@given(corpora(least=1), st.integers(0, 5))
def test_halves_and_split_follow_the_document_alone(corpus: Corpus, seed: int) -> None:
    row = np.array([len(corpus) - 1])
    assert sentences_of(corpus.select(row).halves(seed)[0]) == sentences_of(corpus.halves(seed)[0].select(row))
    train, held_out = corpus.split(0.5, seed)
    assert sorted([*train.keys, *held_out.keys]) == sorted(corpus.keys)
    whole = row if corpus.persons is None else np.flatnonzero(corpus.persons == corpus.persons[-1])
    alone = corpus.select(whole).split(0.5, seed)[0]  # all documents of one person, wherever they lie, go one way
    assert len(alone) in (0, len(whole))
    assert bool(len(alone)) == (corpus.keys[-1] in train.keys)


@given(corpora("left"), corpora("right"), st.integers(0, 5))
def test_parties_and_centre_split_alike(left: Corpus, right: Corpus, seed: int) -> None:
    centre = Corpus.concat([left, right]).split(0.5, seed)
    for whole, one, other in zip(centre, left.split(0.5, seed), right.split(0.5, seed), strict=True):
        assert whole.keys.tolist() == [*one.keys, *other.keys]


def test_halves_depend_on_the_seed_and_are_fair() -> None:
    corpus = Corpus.from_counts(np.ones((2_000, 2), dtype=int), ["x", "y"])
    one, other = corpus.halves(1)[0], corpus.halves(2)[0]
    assert (one.counts != other.counts).nnz > 500
    assert abs(one.counts.toarray()[:, 0].mean() - 0.5) < 0.06  # 5 standard deviations


def test_split_keeps_a_person_together_and_its_fraction() -> None:
    corpus = Corpus.from_counts(np.ones((4_000, 1), dtype=int), ["x"], persons=np.arange(4_000) // 4)
    train, held_out = corpus.split(0.75, seed=1)
    assert not set(train.persons.tolist()) & set(held_out.persons.tolist())
    assert abs(len(train) / len(corpus) - 0.75) < 0.07
    assert len(corpus.split(1.0)[1]) == len(corpus.split(0.0)[0]) == 0
    with pytest.raises(BadSetting, match="fraction"):
        corpus.split(1.5)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.coo_array, sparse.csc_array])
def test_from_counts_takes_any_matrix(kind: object) -> None:
    corpus = Corpus.from_counts(kind(np.array([[0.0, 2.0], [1.0, 0.0]])), ["x", "y"], labels=["p", "q"])  # type: ignore[operator]
    check(corpus)
    assert words_of(corpus) == [["y", "y"], ["x"]]


def test_from_counts_refuses_what_does_not_fit() -> None:
    with pytest.raises(Mistake, match="distinct words"):
        Corpus.from_counts([[1, 2]], ["x", "x"])
    with pytest.raises(Mistake, match="labels"):
        Corpus.from_counts([[1]], ["x"], labels=["p", "q"])
    with pytest.raises(Mistake, match="columns of counts"):
        Corpus.from_counts([[1]], ["x", "y"])


SPANISH = [
    "El perro no está en la casa &amp; el gato duerme con la vecina que vive en el <b>puerto</b>.",
    "La niña dice que los libros de la escuela están en la mesa y no los lee.",
] * 4
ENGLISH = ["The cat is not on the roof &amp; the dog is in <b>the</b> house.", "A doctor says that the lungs are not well."] * 4


@pytest.mark.parametrize("form", ["strings", "a generator", "a file"])
def test_texts_are_read_in_their_language_and_without_markup(tmp_path: Path, form: str) -> None:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in SPANISH))
    read = {
        "strings": lambda: Corpus.from_strings(SPANISH),
        "a generator": lambda: Corpus.from_strings(text for text in SPANISH),
        "a file": lambda: read_corpus(tmp_path / "a.jsonl"),
    }[form]
    with pytest.warns(OtherLanguage, match="the texts read as Spanish, so its stop words are taken") as told:
        corpus = read()
    assert told[0].filename == __file__  # at the line that gives the texts
    assert len(corpus) == len(SPANISH)
    assert {"perro", "vecina", "puerto"} <= set(corpus.vocabulary)
    assert not {"los", "que", "amp", "está"} & set(corpus.vocabulary)


def test_no_single_text_decides_the_language_of_others() -> None:
    long = [" ".join(SPANISH), *["lake river boat wind"] * 3]
    with pytest.warns(OtherLanguage, match=r'some of the texts read as Spanish.*stop_words="es"'):
        whole = Corpus.from_strings(long)
    np.testing.assert_array_equal(whole.select(np.arange(1, 4)).texts, Corpus.from_strings(long[1:]).texts)
    assert "que" in whole.vocabulary
    longer = [" ".join(SPANISH * 60), " ".join(SPANISH * 60), *ENGLISH * 3]  # each has more words than tell a language
    assert language_seen(longer).code == language_seen(longer[1:]).code == language_seen(longer[2:]).code == "en"


def test_english_texts_and_a_tokeniser_that_is_given_say_nothing(recwarn: pytest.WarningsRecorder) -> None:
    assert not {"amp", "the"} & set(Corpus.from_strings(ENGLISH).vocabulary)
    assert "que" in Corpus.from_strings(SPANISH, tokeniser=Tokeniser()).vocabulary
    assert not recwarn.list


def test_from_strings_takes_scikit_learns_arrays() -> None:
    texts = np.array(["Wings beat. Feathers fall!", "", "horses run"], dtype=object)
    corpus = Corpus.from_strings(texts, labels=np.array([1, 2, 3]), persons=["ann", "bob", "ann"], dates=["2020", "", "2021"])
    assert sentences_of(corpus) == [[["wings", "beat"], ["feathers", "fall"]], [["horses", "run"]]]
    assert corpus.skipped == 1
    assert corpus.labels.tolist() == ["1", "3"]
    assert corpus.persons.tolist() == [0, 0]
    for labels in (["p", "q"], []):
        with pytest.raises(Mistake, match="label entries"):
            Corpus.from_strings((text for text in ["wings"]), labels=labels)
    with pytest.raises(Mistake, match="of type int"):
        Corpus.from_strings(["wings", 7])  # type: ignore[list-item]


def test_nothing_known_names_nobody() -> None:
    corpus = Corpus.from_strings(["wings", "hooves", "horns"], labels=[None, float("nan"), "z"])
    assert corpus.labels.tolist() == ["", "", "z"]
    with pytest.raises(Mistake, match="line 2: this document has no person"):
        Corpus.from_strings(["wings", "hooves"], persons=["ann", None])


def test_keys_are_lasting_and_distinct() -> None:
    keys = document_keys("source", 100_000)
    assert len(np.unique(keys)) == 100_000
    assert document_keys("source", 3).tolist() == keys[:3].tolist()
    assert not set(keys.tolist()) & set(document_keys("other", 100_000).tolist())
    assert keys[:2].tolist() == KNOWN  # agreement: the same bytes on every machine, in every version
    bits = (mixed(keys, 7)[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 0.01


KNOWN = [17281447791279318202, 7748202820349940484]


def test_a_document_is_known_by_its_text_however_it_was_read(tmp_path: Path) -> None:
    said = ["Wings beat.  Feathers fall!", "Horses run"]
    one = Corpus.from_strings(said, name="one")
    other = Corpus.from_strings(["horses  RUN", said[0].lower()], name="other", tokeniser=Tokeniser(min_length=5))
    assert content_digests(one).shape == (2, 16)
    assert np.array_equal(content_digests(one), content_digests(other)[::-1])
    assert not np.array_equal(content_digests(one)[0], content_digests(one)[1])
    assert np.array_equal(content_digests(one.project(("wings",))), content_digests(one))
    one.save(tmp_path / "one.npz")
    assert np.array_equal(content_digests(Corpus.load(tmp_path / "one.npz")), content_digests(one))
    both = Corpus.concat([one, other.select(np.array([0]))])
    assert np.array_equal(content_digests(both)[2], content_digests(one)[1])


def test_a_key_is_the_mac_of_the_digest_and_of_the_number_among_equal_documents() -> None:
    secret, digests, copies = bytes(range(16)), np.arange(64, dtype=np.uint8).reshape(4, 16), np.array([0, 1, 2, 1 << 33])
    for key, digest, copy in zip(content_keys(secret, digests, copies), digests, copies, strict=True):
        encryptor = Cipher(algorithms.AES128(secret), modes.CBC(bytes(16))).encryptor()
        whole = encryptor.update(digest.tobytes() + int(copy).to_bytes(8, "little") + bytes(8))
        assert int(key) == int.from_bytes(whole[16:24], "little")
    assert len(content_keys(secret, digests[:0], copies[:0])) == 0


def test_from_tokens_refuses_what_does_not_fit() -> None:
    with pytest.raises(Mistake, match="tokens"):
        Corpus.from_tokens(np.array([0, 0]), np.array([1]), ["x"])
    with pytest.raises(Mistake, match="rising"):
        Corpus.from_tokens(np.array([0, 0]), np.array([3, 2]), ["x"])


def test_a_document_has_the_same_name_whatever_the_order_of_the_words() -> None:
    words, counts = ("river", "boat", "lake", "water"), np.array([[1, 0, 2, 1], [0, 3, 0, 1]])
    order = [2, 0, 3, 1]
    moved = tuple(words[place] for place in order)
    names, again = (
        names_of_counts(sparse.csr_array(table), listed, {}) for table, listed in ((counts, words), (counts[:, order], moved))
    )
    assert np.array_equal(names, again)
    assert not np.array_equal(names[0], names[1])


# ---- parties ---------------------------------------------------------------------------------------------------------------


SIZES = (500, 300, 200)


def labelled(sizes: tuple[int, ...] = SIZES) -> Corpus:
    labels = np.repeat([f"label {i}" for i in range(len(sizes))], sizes)
    return Corpus.from_counts(np.ones((len(labels), 1), dtype=int), ["x"], labels=labels)


def test_by_column() -> None:
    corpus = Corpus.from_strings(["wing", "hoof", "tail"], labels=["b", "a", "b"], parties=["", "p", "p"])
    assert {name: len(part) for name, part in by_column(corpus, "label").items()} == {"a": 1, "b": 2}
    parts = by_column(corpus)
    assert {name: part.keys.tolist() for name, part in parts.items()} == {
        "unnamed": [corpus.keys[0]],
        "p": corpus.keys[1:].tolist(),
    }
    with pytest.raises(Mistake, match="date"):
        by_column(corpus, "date")
    with pytest.raises(BadSetting, match="column"):
        by_column(corpus, "keys")  # type: ignore[arg-type]


@given(st.integers(1, 4), st.integers(0, 99))
def test_equal_deals_every_document_once_to_parties_of_about_one_size(parties: int, seed: int) -> None:
    corpus = labelled((300, 200, 110))
    parts = equal(corpus, parties, seed)
    assert list(parts) == sorted(parts)
    assert sorted(key for part in parts.values() for key in part.keys) == sorted(corpus.keys)
    each = 610 / parties
    assert all(abs(len(part) - each) < 6.2 * np.sqrt(each) for part in parts.values())


@given(st.integers(1, 4), st.floats(0.5, 1e9), st.integers(0, 99))
def test_dirichlet_deals_every_document_once(parties: int, alpha: float, seed: int) -> None:
    corpus = labelled()
    try:
        parts = dirichlet(corpus, parties, alpha, seed)
    except BadSetting:
        return  # a party may get nothing, and is named then
    assert sorted(key for part in parts.values() for key in part.keys) == sorted(corpus.keys)
    again = dirichlet(corpus, parties, alpha, seed)
    assert [part.keys.tolist() for part in again.values()] == [part.keys.tolist() for part in parts.values()]


@pytest.mark.parametrize("alpha", [1e-6, 1e-320])
def test_a_small_alpha_gives_every_label_to_one_party(alpha: float) -> None:
    corpus, met = labelled(tuple([6] * 60)), []
    for part in dirichlet(corpus, 4, alpha).values():
        met += list(np.unique(part.labels))
    assert len(met) == len(set(met)) == 60


def test_in_between_a_label_is_shared_out_as_a_dirichlet_does() -> None:
    """Var q_p = 1/P (1 - 1/P) / (P alpha + 1), to which drawing n documents adds its own share."""
    alpha, parties, documents = 1.0, 4, 500
    held = []
    for seed in range(40):
        for part in dirichlet(labelled((500, 500, 500)), parties, alpha, seed).values():
            held += [float(np.sum(part.labels == "label 0")) / documents]
    each, spread = 1 / parties, 1 / (parties * alpha + 1)
    variance = each * (1 - each) * (spread + (1 - spread) / documents)
    assert abs(np.mean(held) - each) < 0.01
    assert abs(np.var(held) / variance - 1) < 0.4


def test_who_holds_a_document_depends_on_no_other_document_and_on_no_place() -> None:
    """One other document goes, the file is shuffled, a label is there no more: everybody else stays where they were."""
    corpus, rng = labelled((100, 60, 1)), np.random.default_rng(0)
    for deal in (lambda some: equal(some, 3, 5), lambda some: dirichlet(some, 3, 0.7, 5)):
        where = {int(key): name for name, part in deal(corpus).items() for key in part.keys}
        for rows in (np.arange(160), np.arange(1, 161), rng.permutation(161)):
            for name, part in deal(corpus.select(rows)).items():
                assert all(where[int(key)] == name for key in part.keys)


def test_persons_stay_whole_unless_single_documents_are_protected() -> None:
    texts = [f"note number {chr(97 + n // 26)}{chr(97 + n % 26)}word" for n in range(200)]
    corpus = Corpus.from_strings(texts, persons=[f"p{n % 40}" for n in range(200)], labels=[f"l{n % 3}" for n in range(200)])
    for deal in (equal, lambda some, parties, **more: dirichlet(some, parties, 1.0, **more)):
        parts = [set(part.persons.tolist()) for part in deal(corpus, 3).values()]  # type: ignore[union-attr]
        assert sum(map(len, parts)) == 40
        apart = [set(part.persons.tolist()) for part in deal(corpus, 3, persons_whole=False).values()]  # type: ignore[union-attr]
        assert sum(map(len, apart)) > 40


def test_refusals() -> None:
    with pytest.raises(BadSetting, match="`parties`"):
        equal(labelled((1, 1, 0)), 3)
    with pytest.raises(BadSetting, match="`parties`"):
        dirichlet(labelled(), 0, 1.0)
    with pytest.raises(BadSetting, match="leaves party-1 without a document"):
        dirichlet(Corpus.from_strings(["wing", "hoof", "tail"], labels=["a", "a", "a"]), 3, 1e-6)
    with pytest.raises(Mistake, match="the documents have no"):
        dirichlet(Corpus.from_strings(["wing"]), 1, 1.0)
    for alpha in (0.0, -1.0, float("nan")):
        with pytest.raises(BadSetting):
            dirichlet(labelled(), 2, alpha)
