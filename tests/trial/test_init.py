"""`securetm init` writes a federation that is complete: every file is valid, private, and accepted by whoever needs it."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from securetm.corpus.readers import read_corpus
from securetm.credentials.diagnosis import check_own, now_utc
from securetm.credentials.homes import KEYS, check_accepted
from securetm.credentials.keys import Keys
from securetm.credentials.roster import read_roster
from securetm.plans.recommend import whole_plan
from securetm.trial.files import DOCUMENTS, TrialFolder

from ..cli.conftest import Said, securetm

PARTIES = ("numpy", "scikit-learn", "scipy", "standard-library", "torch")


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Said:
    """What the command says; the trial lies in the folder of its JSON document."""
    ended = securetm("init", str(tmp_path_factory.mktemp("place") / "trial"), "--json")
    assert ended.code == 0, ended.err
    return ended


@pytest.fixture(scope="module")
def trial(said: Said) -> TrialFolder:
    return TrialFolder(Path(said.json["folder"]), tuple(said.json["parties"]))


def homes(trial: TrialFolder) -> dict[str, Path]:
    return {"coordinator": trial.coordinator / "home", **{name: trial.party(name) / "home" for name in trial.parties}}


def test_its_last_lines_are_what_to_type_next(said: Said, trial: TrialFolder) -> None:
    commands = [f"serve {trial.plan}", *(f"join {trial.file(name)}" for name in PARTIES)]
    assert said.err.splitlines()[-6:] == [f"  securetm {command}" for command in commands]
    assert [" ".join(command) for command in said.json["commands"]] == commands


def test_the_plan_is_valid_and_everybody_has_the_same(trial: TrialFolder) -> None:
    plan = whole_plan(trial.plan, {})
    assert (plan.profile, plan.model.name) == ("masked", "lda")
    assert [(trial.party(name) / "plan.toml").read_bytes() for name in PARTIES] == [trial.plan.read_bytes()] * 5
    assert read_roster(trial.coordinator / "roster.toml").address == plan.coordinator.listen


def test_each_party_has_documents_that_can_be_read(trial: TrialFolder) -> None:
    for name in PARTIES:
        corpus = read_corpus(trial.party(name) / "documents.jsonl", tokeniser=whole_plan(trial.plan, {}).tokeniser.make())
        assert len(corpus) == DOCUMENTS


def test_the_roster_is_signed_and_accepted_by_all_of_them_with_their_own_keys(trial: TrialFolder) -> None:
    roster = read_roster(trial.coordinator / "roster.toml")
    assert roster.members == PARTIES
    assert roster.unsigned == ()
    for name, home in homes(trial).items():
        check_accepted(home, roster)
        check_own(name, Keys.open(home / KEYS), roster, now_utc())


def test_a_plan_that_this_installation_cannot_run_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wordfreq", None)  # as where it is not installed
    said = securetm("init", str(tmp_path / "trial"), "--profile", "dp-distributed")
    assert said.code == 2
    assert "pip install 'securetm[languages]'" in said.err
    assert not (tmp_path / "trial").exists()


def test_what_is_secret_is_its_owners_alone(trial: TrialFolder) -> None:
    open_to_all = {path.name for path in trial.path.rglob("*") if stat.S_IMODE(path.stat().st_mode) & 0o077}
    assert open_to_all <= {"roster.toml"}


def test_it_is_not_mixed_with_what_is_there(trial: TrialFolder) -> None:
    before = sorted(trial.path.rglob("*"))
    ended = securetm("init", str(trial.path))
    assert ended.code == 2
    assert "is there already" in ended.err
    assert sorted(trial.path.rglob("*")) == before
