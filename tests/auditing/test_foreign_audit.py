"""Topics from elsewhere: files of every format, every fault by name; a model that saw the members, and one that did not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from scipy import sparse

from securetm.auditing.foreign import ForeignFiles, audit_foreign, read_foreign
from securetm.auditing.record import NOT_REFUTED, REFUTED, Audit
from securetm.contracts import Budget, Unit
from securetm.errors import Mistake, NoSuchPath
from tests.cli.conftest import securetm

WORDS = ("boat", "lake", "river", "court", "judge", "law")
WEIGHTS = np.array([[3.0, 2.0, 4.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 5.0, 2.0, 2.0]])


def _same(path: Path) -> None:
    model = read_foreign(path)
    order = [model.words.index(word) for word in WORDS]
    np.testing.assert_allclose(model.weights[:, order], WEIGHTS)
    np.testing.assert_allclose(model.topics.sum(axis=1), 1.0)


def _as_bertopic(folder: Path, counts: np.ndarray, words: Sequence[str], *, frequent: bool = False) -> Path:
    """A folder as BERTopic 0.17 saves it as safetensors with `save_ctfidf`: files, kinds of numbers and weights."""
    factors = np.log(int(counts.sum(axis=1).mean()) / counts.sum(axis=0) + 1)
    shares = counts / counts.sum(axis=1, keepdims=True)
    table = sparse.csr_array((np.sqrt(shares) if frequent else shares) * factors)
    parts = {"shape": np.array(table.shape, dtype=np.int64), "data": table.data, "diag": factors}
    indices, ends = table.indices.astype(np.int32), table.indptr.astype(np.int32)
    folder.mkdir()
    save_file({**parts, "indices": indices, "indptr": ends}, folder / "ctfidf.safetensors")
    model = {"bm25_weighting": False, "reduce_frequent_words": frequent}
    shuffled = {words[n]: n for n in reversed(range(len(words)))}
    vectorizer = {"params": {"ngram_range": [1, 1], "stop_words": None, "vocabulary": None}, "vocab": shuffled}
    (folder / "ctfidf_config.json").write_text(json.dumps({"ctfidf_model": model, "vectorizer_model": vectorizer}, indent=2))
    (folder / "config.json").write_text(json.dumps({"language": None, "min_topic_size": 10, "top_n_words": 10}, indent=2))
    named = {str(n - 1): [[words[n], 0.5]] for n in range(len(counts))}
    (folder / "topics.json").write_text(json.dumps({"topic_representations": named, "topics": [0, -1], "_outliers": 1}))
    save_file({"topic_embeddings": np.zeros((len(counts), 4), dtype=np.float32)}, folder / "topic_embeddings.safetensors")
    return folder


def test_every_format_is_read_alike(tmp_path: Path) -> None:
    pairs = [(n, word, weight) for n, row in enumerate(WEIGHTS) for word, weight in zip(WORDS, row, strict=True) if weight]
    (tmp_path / "m.csv").write_text("topic,word,weight\n" + "\n".join(f"{n},{word},{weight}" for n, word, weight in pairs))
    (tmp_path / "w.json").write_text(json.dumps({"vocabulary": WORDS, "weights": WEIGHTS.tolist()}))
    (tmp_path / "t.json").write_text(json.dumps([{w: v for k, w, v in pairs if k == n} for n in (0, 1)]))
    (tmp_path / "l.json").write_text(json.dumps({"topics": [[[w, v] for k, w, v in pairs if k == n] for n in (0, 1)]}))
    np.savez(tmp_path / "m.npz", weights=WEIGHTS, vocabulary=np.array(WORDS))
    _as_bertopic(tmp_path / "bertopic", WEIGHTS, WORDS)
    for name in ("m.csv", "w.json", "t.json", "l.json", "m.npz", "bertopic"):
        _same(tmp_path / name)


def test_a_folder_of_bertopic_shows_the_counts_of_its_words(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    counts = rng.poisson(rng.gamma(0.3, 4.0, (30, 400))).astype(np.float64)
    counts[:, counts.sum(axis=0) == 0] = 1.0
    counts[3] *= 2  # its rarest word occurs twice; only the proportions stand in the file
    counts[3, 0] += counts[3, 0] % 2
    words = [f"word{n}" for n in range(400)]
    found = read_foreign(_as_bertopic(tmp_path / "plain", counts, words))
    assert found.words == tuple(words)
    rest = np.delete(np.arange(30), 3)
    np.testing.assert_array_equal(found.weights[rest], counts[rest])
    np.testing.assert_allclose(found.weights[3] * (counts[3].sum() / found.weights[3].sum()), counts[3])
    assert found.totals is not None
    damped = read_foreign(_as_bertopic(tmp_path / "damped", counts, words, frequent=True))
    assert damped.totals is None


@pytest.mark.parametrize(("prior", "kind"), [(0.0, np.float64), (0.01, np.float32), (0.1, np.float32)])
def test_shares_with_one_prior_for_all_words_show_the_counts(prior: float, kind: type, tmp_path: Path) -> None:
    """As tomotopy gives its topics: (count + prior) / (length + prior x words), in 32 bits."""
    rng = np.random.default_rng(6)
    counts = rng.poisson(rng.gamma(0.1, 30.0, (20, 3000)))
    shares = (counts + prior) / (counts + prior).sum(axis=1, keepdims=True)
    words = np.array([f"word{n}" for n in range(3000)])
    np.savez(tmp_path / "shares.npz", weights=shares.astype(kind), vocabulary=words)
    found = read_foreign(tmp_path / "shares.npz")
    np.testing.assert_array_equal(found.totals, counts.sum(axis=0))
    smooth = rng.dirichlet(np.full(3000, 0.2), 20)  # as gensim gives them: expected counts are no whole numbers
    np.savez(tmp_path / "smooth.npz", weights=smooth, vocabulary=words)
    assert read_foreign(tmp_path / "smooth.npz").totals is None


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("m.pkl", "cos\nsystem\n", Mistake),
        ("m.bin", "", Mistake),
        ("m.joblib", "", Mistake),
        ("m.txt", "boat 1", Mistake),
        ("m.json", "{", Mistake),
        ("m.json", '{"topics": 3}', Mistake),
        ("m.json", '{"vocabulary": ["a", "b"], "weights": [[1, 2, 3]]}', Mistake),
        ("m.npz", "no archive", Mistake),
        ("m.csv", "topic,word\n0,a\n", Mistake),
        ("m.csv", "topic,word,weight\n", Mistake),
        ("m.csv", "topic,word,weight\n0,a,nan\n", Mistake),
        ("m.csv", "topic,word,weight\n0,a,-1\n", Mistake),
        ("m.csv", "topic,word,weight\n0,a,0\n", Mistake),
        ("m.csv", "topic,word,weight\n0,a,1\n0,a,2\n", Mistake),
        ("m.json", '[{"a": 1, "a": 2}]', Mistake),
        ("m.json", '{"vocabulary": ["a", "a"], "weights": [[1, 2]]}', Mistake),
    ],
)
def test_each_fault_of_a_file_has_its_name(tmp_path: Path, name: str, text: str, error: type[Exception]) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(error):
        read_foreign(tmp_path / name)


def test_objects_in_an_archive_are_not_unpickled(tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", weights=WEIGHTS, vocabulary=np.array(WORDS, dtype=object))
    with pytest.raises(Mistake, match=r"objects, which can run code; words are to be texts: \.astype\(str\)"):
        read_foreign(tmp_path / "m.npz")
    with pytest.raises(NoSuchPath):
        read_foreign(tmp_path / "absent.npz")


# ---- whole audits ----------------------------------------------------------------------------------------------------


def _texts(path: Path, seed: int, documents: int = 300) -> np.ndarray:
    """Documents of 20 words of a thousand, each with a few rare ones, and their counts."""
    rng = np.random.default_rng(seed)
    names = [f"{chr(97 + n // 100)}{chr(97 + n // 10 % 10)}{chr(97 + n % 10)}ing" for n in range(1000)]
    rows = [rng.choice(1000, 20) for _ in range(documents)]
    path.write_text("".join(json.dumps({"text": " ".join(names[n] for n in row)}) + "\n" for row in rows))
    return np.array([np.bincount(row, minlength=1000) for row in rows])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Members, others, a model that counts the members' words, and one that counts those of neither."""
    place = tmp_path_factory.mktemp("foreign")
    names = [f"{chr(97 + n // 100)}{chr(97 + n // 10 % 10)}{chr(97 + n % 10)}ing" for n in range(1000)]
    members, _ = _texts(place / "members.jsonl", 1), _texts(place / "others.jsonl", 2)
    for name, counts in (("saw", members), ("apart", _texts(place / "apart.jsonl", 3))):
        topics = np.stack([counts[n::30].sum(axis=0) for n in range(30)]).astype(np.float64)
        np.savez(place / f"{name}.npz", weights=topics, vocabulary=np.array(names))
    return place


def _audited(place: Path, name: str, **more: object) -> Audit:
    return audit_foreign(ForeignFiles(place / name, place / "members.jsonl", place / "others.jsonl", **more))  # type: ignore[arg-type]


def test_a_model_that_saw_the_members_tells_them_and_another_does_not(place: Path) -> None:
    saw, apart = _audited(place, "saw.npz"), _audited(place, "apart.npz")
    for found, verdict in ((saw, REFUTED), (apart, NOT_REFUTED)):
        assert [(one.attempt.attack, one.attempt.baseline) for one in found.findings] == [
            ("membership", True),
            ("membership", False),
            ("membership_counts", True),
            ("membership_counts", False),
        ]
        assert [one.outcome.verdict for one in found.findings] == [REFUTED, verdict, REFUTED, verdict]
        assert not found.refuted_claims  # nobody claimed anything


def test_a_claim_of_its_maker_is_tried_and_canaries_show_an_epsilon(place: Path) -> None:
    files = (place / "members.jsonl", place / "others.jsonl")
    found = _audited(place, "saw.npz", canaries=files, claimed=Budget(Unit.DOCUMENT, 0.1, 1e-5))
    assert {one.attempt.attack for one in found.refuted_claims} >= {"membership_counts"}
    assert [one.attempt.attack for one in found.findings].count("one_run_epsilon") == 1
    assert "--canaries-in" in found.reproduce[0]


def test_documents_of_no_use_are_named(place: Path, tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_text('{"text": "words of another language"}\n' * 30)
    with pytest.raises(Mistake) as strange:
        audit_foreign(ForeignFiles(place / "saw.npz", place / "members.jsonl", tmp_path / "other.jsonl"))
    assert strange.value.advice().startswith("prepare the texts as the model's own were")
    (tmp_path / "few.jsonl").write_text("".join((place / "others.jsonl").read_text().splitlines(keepends=True)[:3]))
    with pytest.raises(Mistake, match="3 of 3 documents") as few:
        audit_foreign(ForeignFiles(place / "saw.npz", place / "members.jsonl", tmp_path / "few.jsonl"))
    assert few.value.advice() == "give at least 20 documents of each kind"
    with pytest.raises(Mistake):
        audit_foreign(ForeignFiles(place / "saw.npz", place / "members.jsonl", place / "members.jsonl"))


@pytest.mark.slow
def test_the_command_gives_an_ordinary_record_that_is_shown_again(place: Path, tmp_path: Path) -> None:
    sides = ("--members", str(place / "members.jsonl"), "--non-members", str(place / "others.jsonl"))
    said = securetm("audit", "foreign", str(place / "saw.npz"), *sides, "--html", str(tmp_path / "a.html"), "--json")
    assert said.code == 0, said.err
    assert {one["attack"] for one in said.json["findings"]} == {"membership", "membership_counts"}
    assert {one["outcome"] for one in said.json["anonymity"] if one["criterion"] == "linking"} == {"shown", "not tried"}
    (tmp_path / "audit.json").write_text(said.out, "utf-8")
    assert securetm("report", str(tmp_path / "audit.json"), "--json").code == 0
    assert securetm("audit", "foreign", str(place / "saw.npz")).code == 2
    assert securetm("audit", "quick", *sides).code == 2
