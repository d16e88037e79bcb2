"""A role reads its plan, profile and public lists once. Whatever happens to the files afterwards changes no role's view."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from securetm.contracts import Unit
from securetm.corpus.corpus import Corpus
from securetm.federation.wire import wire
from securetm.plans.agreement import agree
from securetm.plans.profiles import profile_names, read_profile
from securetm.resources import named_toml

from .conftest import small_plan
from .played import Played, make_party

WORDS = ("boat", "city", "court", "day", "lake", "law", "matrix", "river", "vector", "water")


def own_profile(name: str, folder: Path) -> Path:
    """A profile that comes with us, as a file that somebody may edit."""
    path = folder / "own.toml"
    path.write_text(named_toml("protocols", name, below="profiles", kind="profile").read_text("utf-8"), "utf-8")
    return path


def test_party_and_coordinator_go_on_under_what_they_agreed(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    path = own_profile("open", tmp_path)
    plan = small_plan(profile=str(path))
    party, played = make_party("north", plan, corpora, tmp_path), Played(plan, tuple(corpora))
    assert played.send(party, played.invite()) == wire.Accepted()
    path.write_text(path.read_text("utf-8").replace("minimum_documents = ", "minimum_documents = 9999"), "utf-8")
    assert agree(plan).profile.digest != party.agreement.profile.digest
    assert played.send(party, played.adopt(WORDS)) == wire.Accepted()
    assert isinstance(played.send(party, played.ask("train", played.fresh())), wire.Accepted)
    path.unlink()
    assert isinstance(played.send(party, played.ask("train", played.fresh(), number=1)), wire.Accepted)
    assert played.send(party, played.invite()) == wire.Accepted()
    party.store.close()


@pytest.mark.parametrize("name", profile_names())
def test_an_agreement_is_what_its_files_say(name: str, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("\n".join(WORDS), "utf-8")
    source: dict[str, Any] = {"vocabulary__source": "file", "origins__vocabulary": "made up", "vocabulary__file": str(words)}
    allowed = "file" in read_profile(name).vocabularies
    agreement = agree(small_plan(profile=name, **(source if allowed else {})))
    assert agreement.profile == read_profile(name, unit=agreement.unit if agreement.unit is not Unit.WORD else Unit.DOCUMENT)
    assert agreement.budget == agreement.profile.budget
    assert agreement.words == (WORDS if allowed else None)
    again = pickle.loads(pickle.dumps(agreement))
    assert (again, again.digest) == (agreement, agreement.digest)
    assert replace(agreement, words=("other", "words")).digest != agreement.digest
