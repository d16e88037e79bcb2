"""Small recorded federations over made-up texts with many words, and the plans that attack them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from securetm.contracts import Adversary
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder, begin
from securetm.federation.simulation.simulation import train
from securetm.plans.recommend import plan_from_tables
from securetm.stages import Unwatched
from securetm.threats import read_threat_model

from .copied_source import CopiedSource, forget

PARTIES = ("centre", "east", "north", "south", "west")


def texts(documents: int, seed: int, words: int = 500, length: tuple[int, int] = (6, 21)) -> list[str]:
    """Documents of 6 to 20 words; some words are frequent, most are rare, as in any language."""
    rng = np.random.default_rng(seed)
    names = np.array(["".join(chr(97 + (n // 26**place) % 26) for place in range(3)) + "ing" for n in range(words)])
    chances = 1.0 / np.arange(3, words + 3)
    chances /= chances.sum()
    return [" ".join(rng.choice(names, size=int(rng.integers(*length)), p=chances)) for _ in range(documents)]


@pytest.fixture(scope="session")
def parties() -> Mapping[str, Corpus]:
    """Five parties with their own documents."""
    return {name: Corpus.from_strings(texts(70, seed), name=name) for seed, name in enumerate(PARTIES)}


@pytest.fixture(scope="session")
def documents_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same documents in one file, with a column that says whose they are."""
    path = tmp_path_factory.mktemp("documents") / "documents.jsonl"
    rows = [{"text": text, "party": name} for seed, name in enumerate(PARTIES) for text in texts(70, seed)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


EMBEDDED = 24  # numbers of an embedding


@pytest.fixture(scope="session")
def embedded_documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made-up documents of five parties, each with an embedding that is drawn at random; their words are in a list beside."""
    rng, path = np.random.default_rng(4), tmp_path_factory.mktemp("documents") / "documents.jsonl"
    lines = []
    for number in range(60 * len(PARTIES)):
        words = rng.integers(0, 120, 12) + 20 * (number % len(PARTIES))
        row = {"text": " ".join(f"word{word:03d}x" for word in words), "party": f"party-{number % len(PARTIES)}"}
        lines.append(json.dumps({**row, "embedding": rng.standard_normal(EMBEDDED).round(4).tolist()}))
    path.write_text("\n".join(lines))
    (path.parent / "words.txt").write_text("\n".join(f"word{word:03d}x" for word in range(200)))
    return path


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Linear algebra in several threads waits for itself on busy cores."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="session")
def source_copy(tmp_path_factory: pytest.TempPathFactory) -> CopiedSource:
    """The package's source once more."""
    return CopiedSource.made(tmp_path_factory.mktemp("house"))


@pytest.fixture
def copied(source_copy: CopiedSource, monkeypatch: pytest.MonkeyPatch) -> Iterator[CopiedSource]:
    """The whole source once more, to be changed; hashes are made of it."""
    source_copy.use(monkeypatch)
    yield source_copy
    source_copy.restore()
    monkeypatch.undo()
    forget()


Recorded = Callable[..., RunFolder]


@pytest.fixture(scope="session")
def recorded(parties: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Makes a recorded run of a profile and a batch, each once."""
    made: dict[tuple[Any, ...], RunFolder] = {}

    def run(profile: str, batch: int, rounds: int = 3, *, with_content: bool = True, hidden: int = 64) -> RunFolder:
        key = (profile, batch, rounds, with_content, hidden)
        if key not in made:
            made[key] = _trained(tmp_path_factory.mktemp("run") / "recorded", parties, *key)
        return made[key]

    return run


def _trained(
    path: Path, parties: Mapping[str, Corpus], profile: str, batch: int, rounds: int, with_content: bool, hidden: int
) -> RunFolder:
    model = {"name": "prodlda", "n_topics": 5, "hidden": hidden, "batch": batch}
    return made_run(path, parties, plan_tables(profile, model, rounds), with_content=with_content)


def plan_tables(
    profile: str, model: Mapping[str, Any], rounds: int, words: Path | None = None, **training: Any
) -> dict[str, Any]:
    """What a plan says. Its words are found together, or stand in a public file."""
    found = {"min_documents": 1, "max_share": 1.0, "most_candidates": 1000}
    return {
        "profile": profile,
        "model": model,
        "training": {"rounds": rounds, "held_out": 0.1, **training},
        "vocabulary": {"source": "file", "file": str(words)} if words else found,
        "origins": {"vocabulary": "made up"} if words else {},
    }


def public_list(parties: Mapping[str, Corpus], place: Path, most: int | None = None) -> Path:
    """A public list of the words of these documents, or of the first of them."""
    path = place / "words.txt"
    path.write_text("\n".join(sorted({word for corpus in parties.values() for word in corpus.vocabulary})[:most]), "utf-8")
    return path


def made_run(
    path: Path, parties: Mapping[str, Corpus], tables: Mapping[str, Any], *, with_content: bool = True, **roles: Any
) -> RunFolder:
    """A recorded run over these documents of the plan that these tables say."""
    folder = begin(path, plan_from_tables(tables, "a test"), parties, with_content=with_content)
    train(folder, Unwatched(), **roles)
    return folder


def adversary(name: str = "coordinator", model: str = "curious_coordinator") -> Adversary:
    """An adversary of a threat model on the shelf."""
    return next(one for one in read_threat_model(model).adversaries if one.name == name)


SETTINGS = """
"corpus.source" = "{documents}"
"corpus.party" = "party"
"corpus.partition" = "column"
"model.name" = "prodlda"
"model.n_topics" = 5
"model.hidden" = 64
"model.batch" = {batch}
"training.rounds" = 3
"vocabulary.min_documents" = 1
"vocabulary.max_share" = 1.0
"vocabulary.most_candidates" = 1000
"""


def write_plan(path: Path, documents: Path, **changes: Any) -> Path:
    """A plan with one trial over the documents of that file."""
    trial: dict[str, Any] = {
        "attack": "gradient_inversion",
        "threat_model": "curious_coordinator",
        "adversary": "coordinator",
        "claim": "sees only sums",
        "profiles": ["open", "masked"],
        "expect_fail": "open",
        "measure": "documents recovered exactly",
        "refuted_from": 0.05,
        "confidence": 0.95,
    }
    batch = changes.pop("batch", 25)
    effort = changes.pop("effort", {"rounds": 2, "documents": 100})
    lines = [f"{name} = {json.dumps(value)}" for name, value in {**trial, **changes}.items()]
    hard = ", ".join(f"{name} = {amount}" for name, amount in effort.items())
    settings = SETTINGS.format(documents=documents, batch=batch)
    head = f'name = "{path.stem}"\ntitle = "A plan of a test"\nnot_tried = ["what a test leaves out"]\n\n[[trial]]\n'
    path.write_text(f"{head}{chr(10).join(lines)}\neffort = {{ {hard} }}\n\n[trial.run]{settings}", "utf-8")
    return path
