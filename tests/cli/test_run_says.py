"""What `securetm run` says beside its tables: at once that it is getting ready, and at the end which party taught nothing."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest
from rich.console import Console

from securetm.cli.command import Output
from securetm.federation.folder import announced, reopen
from securetm.federation.party_store import PartyStore
from securetm.plans.recommend import recommended_for
from securetm.runs.finished import FinishedRun
from securetm.stages import InLines

from .conftest import securetm

SUBJECTS = {"north": "river boat fish lake", "south": "judge court law appeal", "west": "goal match team ball"}
RUN = "run --corpus documents.jsonl --partition column --vocabulary words.txt --profile open --model lda --topics 2 --rounds 2"


def at_a_terminal(*arguments: str) -> str:
    """All that a person sees on a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "securetm.cli.main", *arguments]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL) as process:
        os.close(theirs)
        seen = b""
        try:
            while piece := os.read(ours, 4096):
                seen += piece
        except OSError:  # the other end is closed: a terminal says so by an error
            process.wait()
    os.close(ours)
    return seen.decode()


@pytest.mark.slow
def test_a_person_sees_at_once_that_something_happens(tmp_path: Path) -> None:
    seen = at_a_terminal("run", str(tmp_path / "absent.toml"))
    assert 0 <= seen.find("getting ready") < seen.find("absent.toml")


@pytest.mark.parametrize(("terminal", "for_programs", "shown"), [(True, False, True), (True, True, False), (False,) * 3])
def test_only_people_are_told_to_wait(terminal: bool, for_programs: bool, shown: bool) -> None:
    written = io.StringIO()

    class Shown(Output):
        screen = Console(file=written, force_terminal=terminal)  # type: ignore[assignment]

    with Shown(json=for_programs).busy("getting ready"):
        pass
    assert ("getting ready" in written.getvalue()) is shown


@pytest.mark.parametrize(("corpus", "said"), [("absent.csv", "does not exist"), ("nope:a.csv", "corpus reader called 'nope'")])
def test_a_run_that_is_refused_while_documents_are_read_leaves_no_folder(corpus: str, said: str, tmp_path: Path) -> None:
    ended = securetm("run", "--corpus", corpus, "--out", str(tmp_path / "runs" / "r1"))
    assert ended.code == 2
    assert said in ended.err
    assert not (tmp_path / "runs").exists()


def write(place: Path, words: str) -> None:
    rows = [{"party": name, "text": f"{text} number{n}"} for name, text in SUBJECTS.items() for n in range(20)]
    (place / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (place / "words.txt").write_text("\n".join(words.split()) + "\n", encoding="utf-8")


def test_a_party_without_any_agreed_word_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, f"{SUBJECTS['north']} {SUBJECTS['south']}")
    said = securetm(*RUN.split(), "--out", "runs/one", "--json")
    assert said.code == 0, said.err
    assert said.json["documents"]["west"] == {"all": 20, "with_agreed_words": 0}
    assert said.json["documents"]["north"] == {"all": 20, "with_agreed_words": 20}
    assert "west: none of its documents has an agreed word" in " ".join(said.err.split())
    assert "north: none" not in said.err
    store = PartyStore(reopen(tmp_path / "runs" / "one").party("west"))
    assert store.rows("SELECT value FROM figures WHERE name = 'documents with_agreed_words'") == [(0.0,)]
    store.close()


def test_a_party_with_few_documents_that_count_is_told_how_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, f"{SUBJECTS['north']} {SUBJECTS['south']}")
    rows = [{"party": "west", "text": "river lake" if n < 5 else "goal match"} for n in range(20)]
    with (tmp_path / "documents.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    said = securetm(*RUN.split(), "--out", "runs/one")
    assert said.code == 0, said.err
    assert "west: only 5 of its 40 documents have an agreed word." in " ".join(said.err.split())


SLOVENIAN = (
    "Občina bo letos obnovila cesto med šolo in knjižnico, ki je zelo poškodovana.",
    "Pes je ušel in ga ne najdemo, prosim pomagajte nam ga poiskati na obali.",
    "Kdaj bo odprt bazen in koliko stane vstopnica za otroke, ki so v šoli?",
    "Na tržnici smo kupili sveže jagode, solato in domači kruh, saj je bil lep dan.",
)


def test_posts_in_another_language_give_topics_of_its_words_with_no_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"party": f"p{n % 4}", "text": f"&quot;{SLOVENIAN[n % 3]}&quot; {SLOVENIAN[3]} <br>"} for n in range(120)]
    Path("documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    begun = ("run", "--corpus", "documents.jsonl", "--partition", "column", "--topics", "2", "--no-comparison", "--json")
    free = (*begun, "--rounds", "3", "--set", "vocabulary.max_share=1")
    said = securetm(*free, "--out", "free")
    assert said.code == 0, said.err
    assert "read as Slovenian, so its stop words are taken" in " ".join(said.err.split())
    words = set(FinishedRun.open(Path("free")).vocabulary)
    assert {"cesto", "pes", "bazen"} <= words
    assert not words & {"med", "zelo", "bil", "smo", "nam", "quot"}
    assert reopen(Path("free")).agreement.plan.tokeniser.stop_words == "sl"
    own = securetm(*free, "--set", "tokeniser.stop_words=english", "--out", "own")
    assert "the plan takes stop words of English" in " ".join(own.err.split())
    assert own.code == 0, own.err


def test_under_a_budget_a_language_is_taken_that_each_third_of_the_documents_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan of a run tells its readers the language, and that it counts as public."""
    monkeypatch.chdir(tmp_path)
    Path("words.txt").write_text("cesto\nšolo\nbazen\npes\njagode\n", encoding="utf-8")
    begun = "run --corpus documents.jsonl --topics 2 --profile dp-central --rounds 1 --no-comparison --start plain --out"
    listed = ("--vocabulary", "words.txt", "--public", "vocabulary=of a test")

    def run(out: str, texts: list[str]) -> tuple[str, str]:
        Path("documents.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
        said = securetm(*begun.split(), out, *listed)
        assert said.code in (0, 1), said.err  # so few documents may teach nothing behind the noise
        return " ".join(said.err.split()), (Path(out) / "plan.toml").read_text("utf-8")

    slovenian = [SLOVENIAN[n % 4] for n in range(400)]
    said, plan = run("all", slovenian)
    assert "read as Slovenian, so its stop words are taken, and the plan says so" in said
    (line,) = (line for line in plan.splitlines() if line.startswith("stop_words"))
    assert 'stop_words = "sl"' in line
    assert "the plan takes that for public" in line
    one = [" ".join(slovenian), *["a cast of the knee", "valve and artery"] * 200]  # one long post
    said, plan = run("one", one)
    assert "Slovenian" not in said
    assert 'stop_words = "english"' in plan
    said, plan = run("some", [text for post in slovenian for text in (post, post, "a cast of knee valve and artery")])
    assert "the plan takes stop words of English" in said
    assert 'stop_words = "english"' in plan
    Path("documents.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in slovenian), encoding="utf-8")
    refused = securetm(*begun.split(), "named", "--vocabulary", "english")
    assert "the plan takes stop words of English" in " ".join(refused.err.split())  # the list that was asked for says it
    assert "no document has a word of english" in refused.err


def test_who_is_stopped_while_documents_are_read_goes_on_by_the_plan_in_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, f"{SUBJECTS['north']} {SUBJECTS['south']}")
    asked = {"corpus.source": "documents.jsonl", "corpus.partition": "column", "vocabulary.file": "words.txt"}
    asked |= {"profile": "open", "model.name": "lda", "model.n_topics": 2, "training.rounds": 2}
    with pytest.raises(KeyboardInterrupt), announced(Path("late"), recommended_for(None, asked)):
        raise KeyboardInterrupt
    said = securetm("run", "--resume", "late", "--no-comparison", "--json")
    assert said.code == 0, said.err
    assert (said.json["directory"], said.json["rounds"]) == ("late", 2)


def test_redirected_output_says_what_is_done_and_how_long_it_takes() -> None:
    now, written = [0.0], list[str]()
    bars = InLines(written.append, clock=lambda: now[0])
    bars.stage("embedding texts", 1_000)
    for done, at in ((None, 9.0), (None, 12.0), (501, 13.0), (None, 21.0), (None, 22.0), (600, 33.0), (610, 34.0)):
        now[0] = at
        if done is None:
            bars.say_if_late()  # as a thread does, however long a step lasts
        else:
            bars.step(done)
    bars.stage("training", 1)
    now[0] = 50.0
    bars.say_if_late()
    assert written == [
        "embedding texts …",
        "embedding texts: 0 of 1,000, 12 s so far",
        "embedding texts: 501 of 1,000, 22 s so far",
        "embedding texts: 600 of 1,000, about 81 s left",  # what was known before this run took no time
        "training …",
        "training: 16 s so far",
    ]


def test_a_long_step_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("securetm.stages._EVERY", 0.0)
    told = Event()
    with InLines(lambda line: told.set() if "so far" in line else None) as bars:
        bars.stage("the first round", 1)
        assert told.wait(60)
