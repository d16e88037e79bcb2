"""A party's own file: read whole, with paths seen from where it lies, and refused by its place where it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from securetm.contracts import Budget, Unit
from securetm.errors import BadSetting, NotFound
from securetm.plans.party_file import LedgerChoice, PartyFile, PolicyChoice

WHOLE = """
name = "north"
roster = "shared/roster.toml"
home = "home"

[data]
source = "notes.jsonl"
identity = "notes-2026"
text = "body"

[policy]
profiles = ["masked"]
least_parties = 4
questions = ["train", "joint"]
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "PARTY.toml"
    path.write_text(text, "utf-8")
    return path


def test_a_whole_file_with_paths_seen_from_its_folder(tmp_path: Path) -> None:
    file = PartyFile.read(written(tmp_path, WHOLE))
    assert (file.name, file.data.identity, file.policy.least_parties) == ("north", "notes-2026", 4)
    assert file.data.columns() == {"id": None, "text": "body", "label": None, "date": None, "person": None, "embedding": None}
    assert file.place(file.roster) == tmp_path / "shared" / "roster.toml"
    assert file.home_folder == tmp_path / "home"


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ('name = "north"', "", BadSetting),
        ('name = "north"', 'name = "north"\nsecret = 1', NotFound),
        ('identity = "notes-2026"', 'identity = "../elsewhere"', BadSetting),
        ('text = "body"', 'texts = "body"', NotFound),
        ('"train", "joint"', '"training"', BadSetting),
        ('profiles = ["masked"]', "most_epsilon = 8.0", BadSetting),  # of which unit?
        ('profiles = ["masked"]', 'unit = "paragraph"', BadSetting),
        ('profiles = ["masked"]', 'coordinators = ["ask me"]', BadSetting),
        ("[policy]", "[privacy]\ndelta = 1.0\n[policy]", BadSetting),
        ("[data]", "[[data]]", BadSetting),
    ],
)
def test_what_is_wrong_is_refused(before: str, after: str, kind: type[Exception], tmp_path: Path) -> None:
    assert before in WHOLE
    with pytest.raises(kind):
        PartyFile.read(written(tmp_path, WHOLE.replace(before, after)))


def test_an_empty_policy_allows_and_a_list_allows_what_it_names() -> None:
    assert PolicyChoice().allows_profile("open", b"\1" * 32)
    assert not PolicyChoice(profiles=("masked",)).allows_profile("open", b"\1" * 32)
    assert PolicyChoice(profiles=("01" * 32,)).allows_profile("open", b"\1" * 32)
    assert PolicyChoice().allows_question("joint")
    assert PolicyChoice(questions=("train",)).allows_question("train")
    assert not PolicyChoice(questions=("train",)).allows_question("joint")
    assert PolicyChoice(coordinators=("11111-22222",)).allows_coordinator("11111 22222")
    assert not PolicyChoice(coordinators=("11111-22222",)).allows_coordinator("11111 22223")


def test_the_data_set_has_the_budget_that_its_owner_wrote() -> None:
    run = Budget(Unit.DOCUMENT, 3.0, 1e-6)
    assert LedgerChoice().budget(run) == run
    assert LedgerChoice(epsilon=8.0).budget(run) == Budget(Unit.DOCUMENT, 8.0, 1e-6)


ENGINE = '\n[engine]\nkind = "pool"\nworkers = 3\n'


def test_a_party_chooses_what_computes_its_answers(tmp_path: Path) -> None:
    assert PartyFile.read(written(tmp_path, WHOLE)).engine.make() is not None
    chosen = PartyFile.read(written(tmp_path, WHOLE + ENGINE)).engine
    assert chosen.facts() == {"kind": "pool", "workers": 3}
    assert chosen.make().workers == 3
