"""Delta is judged by the number of documents of all parties together: known in a simulation, announced in a roster."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from securetm.accounting.delta_limits import sentence_delta
from securetm.corpus.corpus import Corpus
from securetm.credentials.homes import announced as announce
from securetm.credentials.key_requests import read_request, write_request
from securetm.errors import Mistake
from securetm.federation.document_minimum import DeltaTooLarge, others_hold, units_of
from securetm.federation.folder import begin
from securetm.plans.agreement import agree

from ..cli.conftest import securetm
from .conftest import FIVE, texts
from .joined import NAMES, Organisations
from .private import paying_parties, private_plan
from .test_data_set_identity import plan_of


def test_a_delta_that_each_party_would_accept_is_refused_for_all_of_them(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Five of 300 accepted .003, one of 1,500 documents whole."""
    all_units = sum(len(corpus) for corpus in five.values())
    delta = 1.5 / all_units
    assert all(delta * len(corpus) < 1 for corpus in five.values())
    with pytest.raises(DeltaTooLarge, match=f"all parties together.*not below 1 / {all_units}"):
        begin(tmp_path / "run", private_plan(tmp_path, "dp-local", privacy__delta=delta), five, ledgers=tmp_path / "ledgers")
    assert not (tmp_path / "ledgers").exists()


def test_persons_are_counted_where_they_are_protected(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    persons = {name: corpus.replace(persons=np.arange(len(corpus)) // 10) for name, corpus in five.items()}
    delta = 1.5 / sum(len(corpus) for corpus in five.values())
    begin(tmp_path / "run", private_plan(tmp_path, "dp-local", privacy__delta=delta), persons)  # a tenth as many of them


def test_above_a_tenth_it_is_told(tmp_path: Path) -> None:
    assert sentence_delta(1e-5, 10_000) is None
    told = sentence_delta(1.01e-5, 10_000)
    assert told is not None
    assert "above 1 / (10 N)" in told
    refused = sentence_delta(1e-4, 10_000)
    assert refused is not None
    assert "is not below 1 / documents" in refused


@pytest.mark.slow
def test_the_command_tells_it_before_it_trains(tmp_path: Path) -> None:
    rows = [{"text": text, "party": name} for n, name in enumerate(FIVE) for text in texts(FIVE[name], 60, n)]
    (tmp_path / "notes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    common = ("--corpus", str(tmp_path / "notes.jsonl"), "--partition", "column", "--profile", "dp-local", "--vocabulary")
    more = ("english", "--rounds", "1", "--topics", "2", "--no-comparison", "--set")
    told = securetm("run", *common, *more, "privacy.delta=0.0005", "--out", str(tmp_path / "told"))
    assert "above 1 / (10 N) = 0.000333 for N = 300 documents" in " ".join(told.err.split())
    refused = securetm("run", *common, *more, "privacy.delta=0.004", "--out", str(tmp_path / "refused"))
    assert refused.code == 2
    assert "not below 1 / 300" in " ".join(refused.err.split())


# ---- what a roster announces -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def announced(keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keys of five parties that each say that they hold forty documents at least."""
    folder = tmp_path_factory.mktemp("announced") / "trial"
    shutil.copytree(keys, folder)
    requests = []
    for name in NAMES:
        home = folder / "parties" / name / "home"
        made = announce(home, 40, None)
        write_request(folder / f"{name}.request", made)
        assert read_request(folder / f"{name}.request").holds == 40
        requests.append(str(folder / f"{name}.request"))
    roster = folder / "coordinator" / "roster.toml"
    issued = securetm("keys", "issue", *requests, "--roster", str(roster), "--home", str(roster.parent / "home"), "--json")
    assert issued.code == 0, issued.err
    for name in NAMES:
        home = folder / "parties" / name / "home"
        told = ("--home", str(home), "--fingerprint", issued.json["fingerprint"], "--json")
        accepted = securetm("keys", "accept", str(roster), *told)
        assert accepted.code == 0, accepted.err
        assert {line["name"]: line["holds"] for line in accepted.json["changes"]} == {
            "coordinator": 0,
            **dict.fromkeys(NAMES, 40),
        }
        (folder / "parties" / name / "roster.toml").write_bytes(roster.read_bytes())
    return folder


def test_a_party_judges_delta_by_what_all_say_that_they_hold(announced: Path, tmp_path: Path) -> None:
    organisations = Organisations.of(announced, tmp_path / "all", plan_of(tmp_path))
    assert organisations.prepared("numpy").roster.holds == dict.fromkeys(NAMES, 40)
    delta = 1.5 / 200
    assert delta * 40 < 1
    (organisations.file("numpy").parent / "plan.toml").write_text(plan_with_delta(organisations.plan, delta), "utf-8")
    with pytest.raises(DeltaTooLarge, match="not below 1 / 200"):
        organisations.prepared("numpy")
    (organisations.file("numpy").parent / "plan.toml").write_text(plan_with_delta(organisations.plan, 0.0009), "utf-8")
    joining = organisations.prepared("numpy")
    (told,) = joining.warnings
    assert "N = 200 documents" in told
    slovenian = tmp_path / "posts.csv"
    slovenian.write_text("text\n" + "Občina bo letos obnovila cesto med šolo in muzejem ker je že zelo slaba\n" * 5, "utf-8")
    theirs = replace(joining.file, data=replace(joining.file.data, source=str(slovenian)))
    assert "read as Slovenian" in replace(joining, file=theirs).warnings[-1]  # who holds them is told, and nobody else


def test_the_coordinator_refuses_it_before_it_invites_anybody(announced: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    roster = announced / "coordinator" / "roster.toml"
    settings = {"roster": roster, "keys": roster.parent / "home" / "keys", "listen": "127.0.0.1:0", "out": tmp_path / "out"}
    own = "[coordinator]\n" + "".join(f'{name} = "{value}"\n' for name, value in settings.items())
    plan.write_text(plan_with_delta(plan_of(tmp_path), 1.5 / 200) + own, "utf-8")
    refused = securetm("serve", str(plan))
    assert refused.code == 2, refused.err
    assert "the roster: a delta of 0.0075 is not below 1 / 200" in " ".join(refused.err.split())


def plan_with_delta(plan: str, delta: float) -> str:
    assert "[privacy]\n" in plan
    lines = [line for line in plan.splitlines() if not line.startswith("delta")]
    return "\n".join(lines).replace("[privacy]", f"[privacy]\ndelta = {delta}") + "\n"


def test_a_party_that_holds_less_than_it_says_does_not_start(announced: Path, tmp_path: Path) -> None:
    organisations = Organisations.of(announced, tmp_path / "all", plan_of(tmp_path))
    organisations.bring("numpy", texts(FIVE["south"], 39, 1))
    with pytest.raises(Mistake, match="fewer than the 40"):
        organisations.prepared("numpy")


def test_without_announcements_the_minimum_of_the_profile_is_known_of_each(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Under dp-distributed every party brings its part of the 100 documents that each sum has to have."""
    profile = agree(private_plan(tmp_path, "dp-distributed")).profile
    least = others_hold("north", {}, profile, tuple(five))
    assert least == 4 * 25  # four of five stay in a sum at least
    assert others_hold("north", {"south": 60}, profile, tuple(five)) == 60 + 3 * 25
    party = next(iter(paying_parties(private_plan(tmp_path, "dp-distributed"), five, tmp_path).values()))
    assert units_of(party.corpus, agree(private_plan(tmp_path, "dp-distributed")).unit) == len(five["north"])
