"""A roster may list builds of securetm: a member with another one is told so, or takes no part."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from securetm.credentials.homes import accept
from securetm.credentials.roster import AnotherBuild, read_roster, write_roster
from securetm.errors import BadSetting
from securetm.version import build_digest, sources

from ..cli.conftest import securetm
from ..federation.conftest import keys as trial_keys  # noqa: F401 - a fixture
from ..federation.joined import NAMES, PLAN, Organisations

OTHER = "0" * 64


@pytest.fixture
def organisations(trial_keys: Path, tmp_path: Path) -> Organisations:  # noqa: F811
    return Organisations.of(trial_keys, tmp_path / "all", PLAN)


def pin(organisations: Organisations, *arguments: str) -> None:
    """The operator writes these builds into the roster, and everybody accepts it."""
    place = organisations.folder / "coordinator"
    where = ("--roster", str(place / "roster.toml"), "--home", str(place / "home"))
    said = securetm("keys", "roster", "builds", *arguments, *where)
    assert said.code == 0, said.err
    for name in NAMES:
        new = read_roster(place / "roster.toml")
        write_roster(organisations.file(name).parent / "roster.toml", new)
        accept(organisations.home(name), new)


def test_a_listed_build_takes_part_and_another_is_named_or_refused(organisations: Organisations) -> None:
    told: list[str] = []
    pin(organisations, OTHER, build_digest(), "--refuse")
    assert organisations.prepared("numpy").warnings == ()
    pin(organisations, OTHER)
    (warning,) = organisations.prepared("numpy").warnings
    assert build_digest() in warning
    pin(organisations, OTHER, "--refuse")
    with pytest.raises(AnotherBuild):
        organisations.prepared("numpy", lambda party, _, __, reason: told.append(f"{party}: {reason}"))
    assert told == ["numpy: AnotherBuild"]
    pin(organisations)
    assert organisations.prepared("numpy").roster.builds == frozenset()


def test_what_a_roster_says_of_builds_is_in_its_digest_and_its_file(organisations: Organisations, tmp_path: Path) -> None:
    plain = read_roster(organisations.folder / "coordinator" / "roster.toml")
    made = [replace(plain, builds=frozenset(one), refuses_others=refused, signatures={}) for one, refused in (
        ((OTHER,), False), ((OTHER,), True), ((OTHER, "f" * 64), True),
    )]  # fmt: skip
    assert len({plain.digest, *(one.digest for one in made)}) == 4
    for one in made:
        write_roster(tmp_path / "roster.toml", one)
        read = read_roster(tmp_path / "roster.toml")
        assert (read.builds, read.refuses_others, read.digest) == (one.builds, one.refuses_others, one.digest)
    for wrong in ({"builds": frozenset({"abc"})}, {"refuses_others": True}):
        with pytest.raises(BadSetting):
            replace(plain, signatures={}, **wrong)


def test_the_version_names_the_build() -> None:
    said = securetm("version", "--verify", "--json")
    assert (said.code, said.json["published"]) == (1, False)  # of a checkout nothing was published
    assert said.json["build"] == build_digest()
    assert re.fullmatch("[0-9a-f]{64}", build_digest())
    names = sources()
    assert {"securetm/version.py", "securetm/_data/protocols/masked.toml"} & set(names) >= {"securetm/version.py"}
    assert not [name for name in names if name.endswith(".pyc")]
    assert build_digest({**names, "securetm/version.py": OTHER}) != build_digest()
