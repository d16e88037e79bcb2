"""Topics from embeddings by packages without privacy: BERTopic, S3 of turftopic and FASTopic.

Run by an interpreter that has them: python semantic.py FOLDER TOPICS. The folder holds what all are given: `counts.npz` and
`words.json` (the documents' words), `embeddings.npy` of documents and `vectors.npy` of words, of one sentence model. A line of
input is a system and a seed: it is fitted once, `found.npz` is written into the folder, and one JSON document is printed.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

TOP = 10
WARM = 5_000  # documents of a fit that compiles, and is not counted: UMAP finds neighbours otherwise among fewer than 4,096


@dataclass(frozen=True)
class Given:
    """What every package is given. A text is the document's words in a row: all packages count the same words."""

    texts: list[str]
    embeddings: Any
    counts: Any
    words: list[str]
    vectors: Any

    @classmethod
    def read(cls, folder: Path) -> Given:
        counts, words = sparse.load_npz(folder / "counts.npz").tocsr(), json.loads((folder / "words.json").read_text("utf-8"))
        rows = zip(counts.indptr[:-1], counts.indptr[1:], strict=True)
        texts = [
            " ".join(words[w] for w in np.repeat(counts.indices[first:end], counts.data[first:end])) for first, end in rows
        ]
        return cls(texts, np.load(folder / "embeddings.npy"), counts, words, np.load(folder / "vectors.npy"))

    def first(self, documents: int) -> Given:
        return Given(self.texts[:documents], self.embeddings[:documents], self.counts[:documents], self.words, self.vectors)

    @staticmethod
    def counting() -> Any:
        from sklearn.feature_extraction.text import CountVectorizer

        return CountVectorizer(analyzer=str.split)


@dataclass
class Timed:
    """Seconds of a piece of work, by the clock and of processor time."""

    seconds: float = 0.0
    processor: float = 0.0

    def __enter__(self) -> Timed:
        self._begun = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._begun[0]
        self.processor += time.process_time() - self._begun[1]


@dataclass(frozen=True)
class Found:
    """What a package found: shares (documents x topics), a topic for each document or -1, and the topics' words."""

    shares: Any
    topics: Any
    words: list[list[str]]
    saved: Timed = field(default_factory=Timed)  # of a part that an earlier fit had made


class Reduced:
    """UMAP as BERTopic sets it, with a seed. Of the same documents and seed it is made once, and its time counts each time."""

    kept: ClassVar[dict[tuple[int, int], tuple[Any, Timed]]] = {}

    def __init__(self, seed: int) -> None:
        self.seed, self.saved = seed, Timed()

    def fit(self, embeddings: Any, y: Any = None) -> Reduced:
        """Reduces them, unless that was done."""
        from bertopic import BERTopic  # type: ignore[import-not-found]  # in the peers' environment only
        from umap import UMAP  # type: ignore[import-not-found]

        self.key = self.seed, len(embeddings)
        if self.key in self.kept:
            self.saved = self.kept[self.key][1]
            return self
        with Timed() as took:
            made = UMAP(**{**BERTopic().umap_model.get_params(), "random_state": self.seed, "n_jobs": 1}).fit(embeddings, y=y)
        self.kept[self.key] = made.embedding_, took
        return self

    def transform(self, _: Any) -> Any:
        """What was made of the embeddings."""
        return self.kept[self.key][0]


def bertopic(given: Given, topics: int, seed: int, means: bool) -> tuple[Any, Any]:
    """UMAP and HDBSCAN as BERTopic sets them, or UMAP and so many means."""
    from bertopic import BERTopic
    from sklearn.cluster import KMeans

    own = {"hdbscan_model": KMeans(topics, n_init=10, random_state=seed)} if means else {}
    reduced = Reduced(seed)
    model = BERTopic(umap_model=reduced, vectorizer_model=given.counting(), **own)

    def judged() -> Found:
        """Its probabilities of topics; where clusters are means it gives none, and the topic alone is the share."""
        hard = np.asarray(model.topics_)
        count = int(hard.max()) + 1
        if means:
            shares = np.eye(count)[hard]
        else:
            from hdbscan import all_points_membership_vectors  # type: ignore[import-not-found]

            raw = np.asarray(all_points_membership_vectors(model.hdbscan_model)).reshape(len(hard), -1)
            shares = model._map_probabilities(raw, original_topics=True)
        return Found(shares, hard, [[word for word, _ in model.get_topic(topic)] for topic in range(count)], reduced.saved)

    return lambda: model.fit_transform(given.texts, given.embeddings), judged


class Encoder:
    """Gives the words their vectors, which were made before: no text is embedded in a fit that is timed."""

    def __init__(self, given: Given) -> None:
        self.vectors = dict(zip(given.words, given.vectors, strict=True))

    def encode(self, words: list[str]) -> Any:
        return np.array([self.vectors[word] for word in words])


def s3(given: Given, topics: int, seed: int) -> tuple[Any, Any]:
    """Independent components. A document's topic is the component on which it stands highest."""
    from turftopic import SemanticSignalSeparation  # type: ignore[import-not-found]

    model = SemanticSignalSeparation(topics, encoder=Encoder(given), vectorizer=given.counting(), random_state=seed)

    def judged() -> Found:
        shares = np.asarray(model.document_topic_matrix)
        names = model.get_vocab()
        return Found(shares, shares.argmax(axis=1), [[str(names[w]) for w in np.argsort(-row)] for row in model.components_])

    return lambda: model.fit_transform(given.texts, embeddings=given.embeddings), judged


class Counted:
    """The counts of the documents in the form of FASTopic's own preprocessing."""

    def __init__(self, given: Given) -> None:
        self.given = given

    def preprocess(self, _: list[str]) -> Any:
        return {"train_bow": self.given.counts, "vocab": self.given.words}


def fastopic(given: Given, topics: int, seed: int) -> tuple[Any, Any]:
    """FASTopic with its own settings: 200 epochs, all documents at once."""
    import torch
    from fastopic import FASTopic  # type: ignore[import-not-found]

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002  # it deals out documents by this generator
    model = FASTopic(topics, preprocess=Counted(given), num_top_words=TOP, doc_embed_model=Encoder(given))

    def judged() -> Found:
        shares = np.asarray(model.transform(doc_embeddings=torch.as_tensor(given.embeddings)))
        return Found(shares, shares.argmax(axis=1), [line.split() for line in model.top_words])

    return lambda: model.fit_transform(given.texts, preset_doc_embeddings=given.embeddings), judged


SYSTEMS: dict[str, tuple[str, Any]] = {
    "bertopic": ("bertopic", partial(bertopic, means=False)),
    "bertopic-means": ("bertopic", partial(bertopic, means=True)),
    "s3": ("turftopic", s3),
    "fastopic": ("fastopic", fastopic),
}


def main() -> None:
    """Fits as the lines of input say, until there are none. BERTopic is first fitted to a few documents, which compiles it."""
    warnings.simplefilter("ignore")
    out, sys.stdout = sys.stdout, sys.stderr  # what packages print is no answer
    folder, topics, warm = Path(sys.argv[1]), int(sys.argv[2]), False
    given = Given.read(folder)
    for line in sys.stdin:
        system, seed = line.split()
        package, made = SYSTEMS[system]
        if package == "bertopic" and not warm:
            made(given.first(WARM), topics, int(seed))[0]()
            warm = True
        fit, judged = made(given, topics, int(seed))
        with Timed() as took:
            fit()
        found = judged()
        facts = {name: getattr(took, name) + getattr(found.saved, name) for name in ("seconds", "processor")}
        np.savez(folder / "found.npz", shares=found.shares.astype(np.float32), topics=found.topics)
        print(
            json.dumps({"version": version(package), **facts, "words": [row[:TOP] for row in found.words]}),
            file=out,
            flush=True,
        )


if __name__ == "__main__":
    main()
