import inspect
import sys
import types

import numpy as np
import pytest
from scipy import sparse

import securetm
from securetm.contracts import Answer, Unit
from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting, BrokenPromise, NoSentences
from securetm.federation.questions import PerPerson
from securetm.mechanisms.perturbed_documents import PerturbedDocuments
from securetm.mechanisms.slot_noise import SlotNoise
from securetm.models.estimator import as_documents
from securetm.models.gibbs.draws import NEVER, Assignments
from securetm.models.gibbs.lda import LDA
from securetm.models.sentence import sentence_proposals, sentences
from securetm.models.sentence.sentence_lda import SentenceLDA
from securetm.models.sentence.sentences import Sentences
from securetm.tally import SumTally

from .sentence_laws import ETA, chain, copies_of, distance, drawn, exact, paper_document, paper_words, posterior, spoken

WORDS = 60
SAMPLERS = pytest.mark.parametrize("sampler", ["gibbs", "mh"])
SWEEPS = {"gibbs": 12, "mh": 25}


def planted(documents=160, seed=0, longest=12):
    """Documents of one to seven sentences; each sentence has one of three topics, each with twenty words of its own."""
    rng = np.random.default_rng(seed)
    found, topics = [], []
    for _ in range(documents):
        shares = rng.dirichlet([0.2] * 3)
        topic = rng.choice(3, p=shares, size=rng.integers(1, 8))
        found.append([list(20 * z + rng.integers(0, 20, rng.integers(2, longest))) for z in topic])
        topics.append(np.bincount(topic, minlength=3) / len(topic))
    return spoken(found, WORDS), np.array(topics)


def counts_of(model, state, documents, memory):
    query = model.query(state)
    tally = SumTally(query.terms)
    query.answer(documents, tally, memory, np.random.default_rng(0))
    return tally.blocks()["counts"]


def rounds(model, state, documents, memory, number):
    for _ in range(number):
        state = model.update(state, Answer({"counts": counts_of(model, state, documents, memory)}))
    return state


# ---- what is drawn ---------------------------------------------------------------------------------------------------

SMALL = {
    "two topics": (2, [[0, 0, 1], [3], [0, 2, 2, 2]], [0.4, 0.4], 20_000),
    "uneven alpha": (3, [[0, 0, 1], [3, 0]], [0.2, 1.5, 0.6], 20_000),
    "one sentence": (17, [[2, 2, 0]], [0.3] * 17, 20_000),
    "many topics": (7, [[0, 3], [1]], list(np.linspace(0.1, 0.9, 7)), 60_000),
    "a long sentence": (3, [[0, 1, 2, 3] * 5 + [1, 1], [0]], [0.5, 0.2, 0.9], 20_000),
}


def case(name):
    k, document, alpha, copies = SMALL[name]
    return document, np.random.default_rng(k).integers(0, 6, (k, 4)).astype(float), alpha, copies


@SAMPLERS
@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("name", SMALL)
def test_a_document_draws_from_its_exact_posterior(name, counted, sampler):
    document, others, alpha, copies = case(name)
    model = SentenceLDA(n_topics=len(others), eta=ETA, sweeps=SWEEPS[sampler], sampler=sampler)
    old = [s % len(others) for s in range(len(document))] if counted else None
    found = drawn(model, document, others, alpha, copies, old)
    assert distance(found, posterior(document, others, alpha)) < 0.02


@SAMPLERS
def test_no_topic_is_lost_on_the_way_through_a_long_sentence(sampler):
    """Halfway the first topic is e^4600 times as likely; at the end both are equally so, and alpha decides."""
    others = np.array([[500.0, 5.0], [5.0, 500.0]])
    model = SentenceLDA(n_topics=2, eta=ETA, sweeps=SWEEPS[sampler], sampler=sampler)
    found = drawn(model, [[0] * 1000 + [1] * 1000], others, [0.3, 0.6], 400)
    assert abs(found.mean() - 2 / 3) < 0.12


@pytest.mark.parametrize("name", ["two topics", "uneven alpha", "many topics"])
def test_the_ratio_that_was_derived_keeps_the_posterior_and_the_papers_do_not(name):
    document, others, alpha, _ = case(name)
    expected = posterior(document, others, alpha)
    law = np.array(list(expected.values()))
    states, sweep = chain(document, others, alpha, exact)
    assert states == list(expected)
    np.testing.assert_allclose(law @ sweep, law, atol=1e-12)
    for wrong in (paper_document, paper_words):
        _, sweep = chain(document, others, alpha, wrong)
        assert 0.5 * np.abs(np.linalg.matrix_power(sweep, 200)[0] - law).sum() > 0.03


_THEN = "            moves = then.chance *"
_ONE_WORD = """            now = State(now.z, _proposed(w, now.z, given, proposals), 0)
            then = State(new, _proposed(w, new, given, proposals), 0)
"""
_LEAVES = "uniform(given.noise[d], drawn + 2) * now.chance"
_OWN = " * (diary.here[now.z] + given.alpha[now.z]) / (diary.here[now.z] + 1 + given.alpha[now.z])"
MUTANTS = {
    "equation 27": (_LEAVES, _LEAVES + _OWN),
    "equation 28": (_THEN, _ONE_WORD + _THEN),
    "no proposal in the ratio": ("* _proposed(w, now.z, given, proposals)", "* 1.0"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_another_ratio_would_be_seen(name, monkeypatch):
    right, wrong = MUTANTS[name]
    source = inspect.getsource(sentence_proposals)
    assert source.count(right) == 1
    mutant = types.ModuleType("mutant")
    monkeypatch.setitem(sys.modules, "mutant", mutant)
    exec(source.replace(right, wrong).replace("cache=True, ", ""), mutant.__dict__)
    monkeypatch.setattr(sentences, "resample_by_proposals", mutant.resample_by_proposals)
    with pytest.raises(AssertionError):
        test_a_document_draws_from_its_exact_posterior("uneven alpha", False, "mh")


@SAMPLERS
@pytest.mark.parametrize("which", range(4))
def test_a_counted_document_takes_its_old_topics_out_of_the_table(which, sampler):
    documents, _ = planted(8)
    model, memory = SentenceLDA(n_topics=4, sampler=sampler), {}
    start = model.start(documents.vocabulary, np.random.default_rng(which))
    one = documents.select(np.array([which]))
    own = counts_of(model, start, one, memory)
    others = np.random.default_rng(which).poisson(0.05, own.shape)
    if sampler == "mh":  # its proposals may look at the whole table; where the posterior leaves no choice, they do not matter
        others[:, :] = 0
        others[np.arange(WORDS) % 4, np.arange(WORDS)] = 10_000
        model = SentenceLDA(n_topics=4, sampler=sampler, sweeps=200)
    with_own = {**start, "counts": others + own, "step": np.array([1])}
    counted = counts_of(model, with_own, one, dict(memory))
    late = {**memory, "draws/steps": memory["draws/steps"] - 1}
    without = counts_of(model, {**with_own, "counts": others}, one, late)
    np.testing.assert_array_equal(counted, without)


@SAMPLERS
def test_every_word_is_counted_once(sampler):
    documents, _ = planted(50)
    model, memory = SentenceLDA(n_topics=5, sweeps=1, sampler=sampler), {}
    state = rounds(model, model.start(documents.vocabulary, np.random.default_rng(0)), documents, memory, 4)
    np.testing.assert_array_equal(state["counts"].sum(axis=0), documents.counts.sum(axis=0))
    assert len(memory["draws/topics"]) == len(documents.sentence_ends)
    held = model.read(documents, WORDS)
    kept = Assignments.remembered(memory).recall(held.draw_ends, held.names(documents.keys))
    np.testing.assert_array_equal(held.counted(kept.topics, model.table(state)), state["counts"])


def test_no_row_names_a_place_twice():
    """Or its length would be told too short, and a clip would let it through."""
    poured = []
    tally = types.SimpleNamespace(add=lambda rows, owners: poured.append(rows))
    model = SentenceLDA(n_topics=2)
    state = model.start(tuple("abcd"), np.random.default_rng(0))
    documents = spoken([[[0, 1, 0], [1, 0], [0, 0, 3], [3]]], 4)
    model.query(state).answer(documents, tally, {}, np.random.default_rng(0))
    (row,) = poured
    assert len(np.unique(row.indices)) == row.nnz <= 6
    assert row.sum() == 9


@SAMPLERS
def test_threads_change_nothing(sampler):
    documents, _ = planted(41)
    fits = [SentenceLDA(n_topics=3, threads=n, sampler=sampler).fit(documents, epochs=3) for n in (1, 2, 5)]
    for fitted in fits[1:]:
        np.testing.assert_array_equal(fitted.learned.state["counts"], fits[0].learned.state["counts"])
        np.testing.assert_array_equal(fitted.transform(documents), fits[0].transform(documents))


def test_sums_do_not_depend_on_the_length_of_a_chunk(monkeypatch):
    documents, _ = planted(30)
    model = SentenceLDA(n_topics=3)
    state = model.start(documents.vocabulary, np.random.default_rng(0))
    whole = counts_of(model, state, documents, {})
    monkeypatch.setattr(sentences, "_CHUNK", 30)
    np.testing.assert_array_equal(counts_of(model, state, documents, {}), whole)
    query = PerPerson(model.query(state))
    persons = np.random.default_rng(1).integers(0, 9, 30)
    ends = {"sentence_ends": documents.sentence_ends, "keys": documents.keys}
    owned = Corpus.from_tokens(documents.tokens, documents.token_ends, documents.vocabulary, persons=persons, **ends)
    tally = SumTally(query.terms, persons=persons)
    query.answer(owned, tally, {}, np.random.default_rng(0))
    assert query.terms.unit is Unit.PERSON
    np.testing.assert_array_equal(tally.blocks()["counts"], whole)


# ---- how documents are read --------------------------------------------------------------------------------------------


def as_lists(held):
    """Back to sentences, each as its words in order of number."""
    s = held.spoken
    found = []
    for d in range(len(held)):
        words = s.kinds[s.kind_ends[d] : s.kind_ends[d + 1]]
        assert len(set(words)) == len(words)
        own = range(s.draw_ends[d], s.draw_ends[d + 1])
        parts = [slice(s.word_ends[i], s.word_ends[i + 1]) for i in own]
        found.append([sorted(np.repeat(words[s.places[p]], s.counts[p]).tolist()) for p in parts])
    return found


def test_sentences_are_read_as_they_stand():
    given = [[[3, 1, 3], [1], [2, 2]], [], [[1, 0]], [[0], [0], [3, 0]]]
    held = Sentences.of(spoken(given, 4), 4)
    assert as_lists(held) == [[sorted(sentence) for sentence in document] for document in given]
    np.testing.assert_array_equal(held.lengths, [0, 6, 6, 8, 12])
    empty = Sentences.of(spoken([], 4), 4)
    assert len(empty) == 0
    assert empty.draw_ends.tolist() == [0]


def test_long_sentences_are_cut_into_even_parts():
    given = [[list(range(7)), [1, 2, 3]], [[5]], [list(range(6))]]
    held = Sentences.of(spoken(given, 7), 7, longest=3)
    expected = [[[0, 1], [2, 3], [4, 5, 6], [1, 2, 3]], [[5]], [[0, 1, 2], [3, 4, 5]]]
    assert as_lists(held) == expected
    assert len(SentenceLDA(longest=3).read(spoken(given, 7), 7).spoken.word_ends) == 8


def test_bare_counts_have_no_sentences_and_that_is_said():
    counts = as_documents(np.ones((3, 4), dtype=np.int64))
    with pytest.raises(NoSentences) as refusal:
        SentenceLDA(n_topics=2).fit(counts)
    assert "sentence_ends" in refusal.value.hint
    fitted = SentenceLDA(n_topics=2).fit(copies_of([[0, 1], [2, 3]], 4, 5), epochs=2)
    with pytest.raises(NoSentences):
        fitted.transform(sparse.csr_array(np.ones((3, 4), dtype=np.int64)))


def test_topics_follow_their_documents_and_where_sentences_end_is_part_of_them():
    documents, _ = planted(20)
    model, memory = SentenceLDA(n_topics=3), {}
    state = rounds(model, model.start(documents.vocabulary, np.random.default_rng(0)), documents, memory, 2)
    held = model.read(documents, WORDS)
    before = Assignments.remembered(memory).recall(held.draw_ends, held.names(documents.keys))
    order = np.random.default_rng(4).permutation(20)[:12]
    moved = documents.select(order)
    some = model.read(moved, WORDS)
    after = Assignments.remembered(memory).recall(some.draw_ends, some.names(moved.keys))
    for here, there in enumerate(order):
        expected = before.topics[before.draw_ends[there] : before.draw_ends[there + 1]]
        np.testing.assert_array_equal(after.topics[after.draw_ends[here] : after.draw_ends[here + 1]], expected)
    assert (after.steps == state["step"][0] - 1).all()
    joined = model.read(spoken([[[0, 1, 2, 3]]], 4, keys=[5]), 4).names(np.array([5]))
    parted = model.read(spoken([[[0, 1], [2, 3]]], 4, keys=[5]), 4).names(np.array([5]))
    assert joined != parted
    assert Assignments.remembered(memory).recall(np.array([0, 1]), joined).steps == [NEVER]


# ---- what is learned ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["gibbs", "mh"])
def fitted(request):
    return SentenceLDA(n_topics=3, eta=0.01, sampler=request.param).fit(planted()[0], epochs=30)


def test_planted_topics_are_found(fitted):
    tops = [{int(word[1:]) // 20 for word in words} for words in fitted.top_words(10)]
    assert sorted(tops, key=min) == [{0}, {1}, {2}]
    home = [tops.index({t}) for t in range(3)]
    fresh, shares = planted(60, seed=9)
    expected = (shares * np.diff(Sentences.of(fresh, WORDS).draw_ends)[:, None]) + fitted.alpha
    found = fitted.transform(fresh)[:, home]
    np.testing.assert_allclose(found, expected / expected.sum(axis=1, keepdims=True), atol=0.02)


def test_it_is_saved_and_loaded(fitted, tmp_path):
    fitted.save(tmp_path / "model.safetensors")
    again = securetm.SentenceLDA.load(tmp_path / "model.safetensors")
    assert again == fitted
    fresh, _ = planted(20, seed=3)
    np.testing.assert_array_equal(again.transform(fresh), fitted.transform(fresh))


def test_shares_of_one_sentence_are_known_in_closed_form(fitted):
    sentence = [0, 0, 25, 41, 7]
    belongs = fitted.components_[:, sentence].prod(axis=1)
    expected = (belongs / belongs.sum() + fitted.alpha) / (1 + 3 * fitted.alpha)
    np.testing.assert_allclose(fitted.transform(spoken([[sentence]], WORDS)), expected[None], rtol=1e-9)
    np.testing.assert_allclose(fitted.transform(spoken([[]], WORDS)), [[1 / 3] * 3])


def test_likelihood_is_that_of_whole_sentences(fitted):
    seen, unseen = planted(6, seed=5)[0], [[[3, 3, 21]], [[40, 5], [59]], [], [[1]], [[2, 2], [2, 30]], [[7] * 20]]
    shares, likelihood = fitted.transform(seen), []
    for share, document in zip(shares, unseen, strict=True):
        likelihood.append(sum(np.log((fitted.components_[:, words].prod(axis=1) * share).sum()) for words in document))
    found = fitted.log_likelihood(fitted.learned.state, seen, spoken(unseen, WORDS))
    np.testing.assert_allclose(found, likelihood, rtol=1e-10)
    one_word_each = spoken([[[w] for sentence in document for w in sentence] for document in unseen], WORDS)
    by_word = LDA.log_likelihood(fitted, fitted.learned.state, seen, one_word_each)
    assert by_word.shape == (6,)


@pytest.mark.parametrize("priors", ["symmetric", "learned"])
def test_priors_are_learned_sentence_by_sentence(priors):
    """Documents mix three topics by shares that Dirichlet(0.2) gave; a topic has a third of the words, so eta is small."""
    state = SentenceLDA(n_topics=3, alpha=0.5, priors=priors).fit(planted(400)[0], epochs=40).learned.state
    assert 0.1 < state["alpha"].mean() < 0.35
    assert (state["alpha"].std() == 0) == (priors == "symmetric")
    assert 0.03 < state["eta"][0] < 0.1


def test_it_predicts_sentences_better_than_lda_does():
    documents, held = planted()[0], planted(60, seed=9)[0]
    seen, unseen = held.halves(0)
    models = [kind(n_topics=3).fit(documents, epochs=20) for kind in (SentenceLDA, LDA)]
    ours, theirs = (model.log_likelihood(model.learned.state, seen, unseen).sum() for model in models)
    assert ours > theirs + 0.02 * unseen.counts.sum()


# ---- behind noise ------------------------------------------------------------------------------------------------------


def behind(documents, epsilon=8.0):
    """The same documents behind discrete Laplace noise, which these tests draw from a secret that everybody knows."""
    law = SlotNoise(len(documents.vocabulary), epsilon, 0.2, whole=True)
    return PerturbedDocuments.of(documents, law, bytes(32))


def test_planted_topics_are_found_behind_noise():
    hidden = behind(planted()[0])
    assert hidden.tokens is None
    model, memory = SentenceLDA(n_topics=3), {}
    state = rounds(model, model.start(hidden.vocabulary, np.random.default_rng(0)), hidden, memory, 40)
    shares = model.topics(state).reshape(3, 3, 20).sum(axis=2)
    assert sorted(shares.argmax(axis=1)) == [0, 1, 2]
    assert shares.max(axis=1).min() > 0.9


def test_a_sentence_behind_noise_is_its_slots():
    documents = spoken([[list(range(7)), [1, 2, 3]], [], [[5]], [list(range(6))]], 7)
    open_, hidden = (SentenceLDA(longest=3).read(held, 7) for held in (documents, behind(documents)))
    np.testing.assert_array_equal(hidden.draw_ends, open_.draw_ends)
    np.testing.assert_array_equal(np.diff(hidden.slot_ends), [2, 2, 3, 3, 1, 3, 3])
    bare = Corpus.from_counts(documents.counts, documents.vocabulary)
    with pytest.raises(NoSentences):
        SentenceLDA().read(behind(bare), 7)


# ---- what is given to it -----------------------------------------------------------------------------------------------

LITTLE = {
    "one word": [[[0]]],
    "one document": [[[0, 1, 0], [2]]],
    "empty": [[], []],
    "nobody's": [],
    "an empty one": [[], [[0, 1], [2]], []],
    "a sentence of two thousand": [[list(range(3)) * 700, [0]]],
}


@SAMPLERS
@pytest.mark.parametrize("name", LITTLE)
@pytest.mark.parametrize("k", [1, 7])
def test_little_input_ends_in_finite_topics(name, k, sampler):
    documents = spoken(LITTLE[name], 3)
    model = SentenceLDA(n_topics=k, sampler=sampler).fit(documents, epochs=3)
    assert np.isfinite(model.components_).all()
    np.testing.assert_allclose(model.components_.sum(axis=1), 1)
    np.testing.assert_allclose(model.transform(documents).sum(axis=1), 1)
    np.testing.assert_array_equal(model.learned.state["counts"].sum(axis=0), documents.counts.sum(axis=0))
    assert np.isfinite(model.score(documents))


@SAMPLERS
@pytest.mark.parametrize("counts", [-(2**63), 2**63 - 1, -1])
def test_a_table_that_makes_no_sense_still_gives_topics(counts, sampler):
    """A coordinator may send anything of the right shape; what a party answers then are still its own words."""
    documents, _ = planted(10)
    model, memory = SentenceLDA(n_topics=3, sampler=sampler), {}
    state = rounds(model, model.start(documents.vocabulary, np.random.default_rng(0)), documents, memory, 1)
    forged = {**state, "counts": np.full_like(state["counts"], counts)}
    np.testing.assert_array_equal(counts_of(model, forged, documents, memory).sum(axis=0), documents.counts.sum(axis=0))
    assert np.isfinite(model.infer(forged, documents)).all()


def test_a_table_of_another_size_is_refused():
    documents, _ = planted(5)
    state = SentenceLDA(n_topics=3).start(documents.vocabulary, np.random.default_rng(0))
    with pytest.raises(BrokenPromise):
        counts_of(SentenceLDA(n_topics=4), state, documents, {})
    with pytest.raises(BrokenPromise):
        SentenceLDA(n_topics=3).infer(state, spoken([[[0]]], 3))


@pytest.mark.parametrize(
    ("setting", "value"), [("n_topics", 0), ("alpha", 0.0), ("sampler", "vb"), ("longest", -1), ("cycles", 0)]
)
def test_settings_are_checked_before_anything_is_read(setting, value):
    with pytest.raises(BadSetting) as refusal:
        SentenceLDA(**{setting: value})
    assert refusal.value.name == setting
