"""Names of documents where roles are: under a secret of a party's home, and persons that a simulation may not cut in pieces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from securetm.corpus.corpus import Corpus
from securetm.corpus.partitions import by_column, equal
from securetm.errors import Mistake, SecuretmError
from securetm.federation.folder import begin
from securetm.plans.schema import Plan

from .conftest import FIVE, texts
from .joined import NAMES, PLAN, Organisations
from .private import private_plan


@pytest.fixture(scope="module")
def organisations(keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Organisations:
    folder = tmp_path_factory.mktemp("organisations")
    return Organisations.of(keys, folder / "all", PLAN)


def test_a_party_names_its_documents_under_a_secret_of_its_home(organisations: Organisations) -> None:
    """The same documents under one identity at two parties: nobody can compute the keys that another one's home gives."""
    one, other = NAMES[:2]
    said = texts(FIVE["north"], 40, 7)
    for name in (one, other):
        organisations.bring(name, said)
    keys, others = (organisations.prepared(name).corpus.keys for name in (one, other))
    assert not np.isin(keys, others).any()
    assert not np.isin(keys, Corpus.from_strings(said, name="notes").keys).any()
    secret = organisations.home(one) / "names.key"
    assert (len(secret.read_bytes()), secret.stat().st_mode & 0o777) == (32, 0o600)


def test_a_file_in_another_order_or_with_one_line_less_gives_the_same_keys(organisations: Organisations) -> None:
    name = NAMES[2]
    said = texts(FIVE["south"], 40, 8)
    organisations.bring(name, said)
    before = set(organisations.prepared(name).corpus.keys.tolist())
    assert len(before) == 40
    organisations.bring(name, said[::-1])
    assert set(organisations.prepared(name).corpus.keys.tolist()) == before
    organisations.bring(name, said[1:])
    assert set(organisations.prepared(name).corpus.keys.tolist()) < before


def test_a_secret_that_was_cut_is_refused_and_not_drawn_anew(organisations: Organisations) -> None:
    """With another secret, documents that were held out would be learned from."""
    name = NAMES[3]
    organisations.prepared(name)
    (organisations.home(name) / "names.key").write_bytes(b"short")
    with pytest.raises(SecuretmError, match=r"names\.key"):
        organisations.prepared(name)


# ---- persons ------------------------------------------------------------------------------------------------------------


def notes_of_persons() -> Corpus:
    """Everybody has documents at two of five parties."""
    said = [text for number, subject in enumerate(FIVE.values()) for text in texts(subject, 60, number)]
    at = [f"party {number // 60}" for number in range(300)]
    return Corpus.from_strings(said, persons=[f"p{number % 75}" for number in range(300)], parties=at)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return private_plan(tmp_path, "dp-central", privacy__noise=1.0)


def test_persons_at_several_parties_are_refused(plan: Plan, tmp_path: Path) -> None:
    parts = by_column(notes_of_persons())
    with pytest.raises(Mistake, match="75 persons"):
        begin(tmp_path / "run", plan, parts)
    with pytest.raises(Mistake, match="documents at several parties, and the budget"):
        begin(tmp_path / "run", plan, dict(parts))
    begin(tmp_path / "apart", replace(plan, privacy=replace(plan.privacy, unit="document")), parts)


def test_dealt_out_they_stay_whole(plan: Plan, tmp_path: Path) -> None:
    begin(tmp_path / "run", plan, equal(notes_of_persons(), 5))
