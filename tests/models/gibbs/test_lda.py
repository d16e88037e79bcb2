import numpy as np
import pytest

from securetm.answers.clipped_sum import ClippedRowSum
from securetm.contracts import Answer, Unit
from securetm.corpus.corpus import Corpus
from securetm.corpus.held_documents import HeldDocuments
from securetm.federation.questions import PerPerson
from securetm.models.batches import chunks
from securetm.models.given_documents import as_documents
from securetm.models.lda import counting
from securetm.models.lda.counting import NEVER, Assignments
from securetm.models.lda.lda import LDA, LdaDocuments
from securetm.testing.query_laws import SumOfRows
from tests.models.trained_by_hand import VOCABULARY, WORDS, counts_of, planted, rounds

# ---- what is drawn ---------------------------------------------------------------------------------------------------


def test_no_row_names_a_place_twice():
    """Or its length would be told too short, and a clip would let it through."""
    counts = np.zeros((1, WORDS), dtype=np.int64)
    counts[0, :3] = 40
    clipped_sum = SumOfRows()
    poured = []
    clipped_sum.add = lambda rows, owners: poured.append(rows)
    model = LDA(n_topics=3)
    state = model.start(VOCABULARY, np.random.default_rng(0))
    model.query(state).answer(as_documents(counts, VOCABULARY), clipped_sum, {}, np.random.default_rng(0))
    (row,) = poured
    assert len(np.unique(row.indices)) == row.nnz <= 9
    assert row.sum() == 120


def test_sums_do_not_depend_on_the_length_of_a_chunk(monkeypatch):
    documents, _ = planted(40)
    persons = np.random.default_rng(1).integers(0, 9, 40)
    model = LDA(n_topics=3)
    state = model.start(VOCABULARY, np.random.default_rng(0))
    whole = counts_of(model, state, documents, {})
    monkeypatch.setattr(counting, "_CHUNK", 30)
    np.testing.assert_array_equal(counts_of(model, state, documents, {}), whole)
    query = PerPerson(model.query(state))
    owned = Corpus(HeldDocuments(documents.counts, documents.vocabulary, documents.keys, persons=persons))
    clipped_sum = ClippedRowSum(query.terms, persons=persons)  # which refuses a person that comes back in a later chunk
    query.answer(owned, clipped_sum, {}, np.random.default_rng(0))
    assert query.terms.unit is Unit.PERSON
    np.testing.assert_array_equal(clipped_sum.blocks()["counts"], whole)


@pytest.mark.parametrize("most", [1, 3, 8])
def test_a_person_is_in_one_chunk_whatever_the_documents_sum_up_to(most):
    """Or a party would refuse for a sum of lengths that one document more or less does not have."""
    ends, persons = np.array([0, 1, 2, 4, 5, 6]), np.array([0, 1, 2, 1, 0])
    found = list(chunks(ends, persons, most))
    assert sorted(np.concatenate(found).tolist()) == [0, 1, 2, 3, 4]
    met = [set(persons[rows].tolist()) for rows in found]
    assert sum(map(len, met)) == len(set().union(*met)) == 3


# ---- what a party remembers --------------------------------------------------------------------------------------------


def test_topics_follow_their_documents_wherever_these_stand():
    documents, _ = planted(20)
    model, memory = LDA(n_topics=3), {}
    state = rounds(model, model.start(VOCABULARY, np.random.default_rng(0)), documents, memory, 2)
    bags = LdaDocuments.from_counts(documents.counts, WORDS)
    before = Assignments.remembered(memory).recall(bags.draw_ends, bags.names(documents.keys))
    order = np.random.default_rng(4).permutation(20)[:12]
    moved = documents.select(order)
    some = LdaDocuments.from_counts(moved.counts, WORDS)
    after = Assignments.remembered(memory).recall(some.draw_ends, some.names(moved.keys))
    for here, there in enumerate(order):
        expected = before.topics[before.draw_ends[there] : before.draw_ends[there + 1]]
        np.testing.assert_array_equal(after.topics[after.draw_ends[here] : after.draw_ends[here + 1]], expected)
    assert (after.steps == state["step"][0] - 1).all()


def test_documents_that_were_not_asked_keep_their_topics():
    documents, _ = planted(20)
    model, memory = LDA(n_topics=3), {}
    state = rounds(model, model.start(VOCABULARY, np.random.default_rng(0)), documents, memory, 1)
    bags = LdaDocuments.from_counts(documents.counts, WORDS)
    names = bags.names(documents.keys)
    before = Assignments.remembered(memory).recall(bags.draw_ends, names)
    counts_of(model, state, documents.select(np.arange(5)), memory)
    after = Assignments.remembered(memory)
    np.testing.assert_array_equal(after.recall(bags.draw_ends, names).steps, [1] * 5 + [0] * 15)
    for row in range(5, 20):
        one = LdaDocuments.from_counts(documents.counts[[row]], WORDS)
        expected = before.topics[before.draw_ends[row] : before.draw_ends[row + 1]]
        np.testing.assert_array_equal(after.recall(one.draw_ends, names[[row]]).topics, expected)


def test_a_document_that_changed_is_a_new_one():
    documents, _ = planted(4)
    memory = {}
    model = LDA(n_topics=3)
    rounds(model, model.start(VOCABULARY, np.random.default_rng(0)), documents, memory, 1)
    table = documents.counts.toarray()
    table[2, 5] += 1
    bags = LdaDocuments.from_counts(table, WORDS)
    recalled = Assignments.remembered(memory).recall(bags.draw_ends, bags.names(documents.keys))
    np.testing.assert_array_equal(recalled.steps, [0, 0, NEVER, 0])


# ---- what is learned ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    return LDA(n_topics=3).fit(planted()[0], epochs=30)


def test_planted_topics_are_found(fitted):
    documents, topic = planted()
    tops = [{int(word[1:]) // 20 for word in words} for words in fitted.top_words(10)]
    assert sorted(tops, key=min) == [{0}, {1}, {2}]
    home = [tops.index({t}) for t in range(3)]
    fresh, fresh_topic = planted(60, seed=9)
    assert (fitted.transform(documents).argmax(1) == np.array(home)[topic]).mean() > 0.98
    assert (fitted.transform(fresh).argmax(1) == np.array(home)[fresh_topic]).mean() > 0.95


def test_shares_of_one_word_are_known_in_closed_form(fitted):
    shares = fitted.transform(as_documents(np.eye(WORDS, dtype=np.int64), VOCABULARY))
    belongs = fitted.components_.T / fitted.components_.T.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares, (belongs + fitted.alpha) / (1 + 3 * fitted.alpha), rtol=1e-9)
    nothing = fitted.transform(as_documents(np.zeros((2, WORDS), dtype=np.int64), VOCABULARY))
    np.testing.assert_allclose(nothing, 1 / 3)


# ---- what is given to it -----------------------------------------------------------------------------------------------


def test_noise_leaves_no_negative_count():
    model = LDA(n_topics=2)
    state = model.start(("a", "b"), np.random.default_rng(0))
    after = model.update(state, Answer({"counts": np.array([[-3.0, 2.4], [0.6, -0.1]])}))
    np.testing.assert_array_equal(after["counts"], [[0, 2.4], [0.6, 0]])
    assert after["counts"].dtype == state["counts"].dtype
