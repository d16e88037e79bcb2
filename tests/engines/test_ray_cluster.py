"""Parties join a cluster that is there, by `[engine]` of their own file: the same bytes, and whatever is open is refused.

Each test starts real processes of Ray on this machine alone, and ends them.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from securetm.answers.block_answers import IN_PROCESS
from securetm.contracts import Engine
from securetm.engines.listening import family, is_loopback, listened
from securetm.engines.ray_host import handle
from securetm.errors import Failed, Mistake
from securetm.plans.party_file import PartyFile

from .ray_cluster import PATIENCE, head, with_tls, with_token
from .small_work import process_of
from .test_ray import on_disk, stored

pytestmark = pytest.mark.slow
__all__ = ["stored"]
PARTY = """
name = "north"
[data]
source = "notes"
identity = "notes"
[engine]
kind = "ray"
address = "{address}"
workers = {workers}
"""


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a cluster with a token and TLS, and of the party that joins it."""
    folder = tmp_path_factory.mktemp("keys")
    return {**with_token(folder), **with_tls(folder)}


@pytest.fixture(scope="module")
def cluster(closed: dict[str, str]) -> Iterator[str]:
    with head(closed) as address:
        yield address


@pytest.fixture(autouse=True)
def no_settings_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("RAY_")]:
        monkeypatch.delenv(name)


def engine_of(folder: Path, address: str, workers: int = 2) -> Engine:
    """The engine that a party's own file chooses."""
    path = folder / "PARTY.toml"
    path.write_text(PARTY.format(address=address, workers=workers), "utf-8")
    return PartyFile.read(path).engine.make()


def given(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


def test_a_party_joins_a_cluster_with_token_and_tls_and_the_bytes_are_those_of_one_process(
    cluster: str, closed: dict[str, str], stored: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(closed, monkeypatch)
    engine = engine_of(tmp_path, cluster)
    try:
        assert on_disk(stored, engine, "cluster") == on_disk(stored, IN_PROCESS, "here")  # type: ignore[arg-type]
        assert os.getpid() not in set(engine.map(process_of, range(4)))
    finally:
        engine.close()


def test_a_party_without_the_token_or_with_another_is_refused(
    cluster: str, closed: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(Mistake, match=cluster):
        engine_of(tmp_path, cluster)
    given({**closed, **with_token(tmp_path)}, monkeypatch)
    with pytest.raises(Failed, match=cluster):
        list(engine_of(tmp_path, cluster).map(abs, [-1]))


def test_a_cluster_with_tls_does_not_answer_without_and_none_beyond_this_machine_is_asked_without(
    cluster: str, closed: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given({name: value for name, value in closed.items() if name.startswith("RAY_AUTH_")}, monkeypatch)
    with pytest.raises(Failed, match=cluster):
        list(engine_of(tmp_path, cluster).map(abs, [-1]))
    with pytest.raises(Mistake, match="RAY_USE_TLS is not 1"):
        engine_of(tmp_path, "192.0.2.1:6379")


def test_a_cluster_that_asks_nobody_for_a_token_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given(with_token(tmp_path), monkeypatch)
    with head({"RAY_AUTH_MODE": "disabled"}) as address, pytest.raises(Failed, match=address):
        list(engine_of(tmp_path, address).map(abs, [-1]))


# ---- a party that is killed --------------------------------------------------------------------------------------------

KILLED = """
import sys
from securetm.engines.ray_engine import RayEngine
engine = RayEngine(2, sys.argv[1])
print(engine.driver.number, engine.driver.folder.path, flush=True)
print(list(engine.map(abs, [-1])), flush=True)
sys.stdin.read()
"""


@contextmanager
def party_on_ray(address: str) -> Iterator[tuple[subprocess.Popen[str], int, Path]]:
    """A party that computes on that cluster, the process of its driver, and the driver's folder."""
    command = [sys.executable, "-c", KILLED, address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as party:
        assert party.stdout is not None
        number, folder = party.stdout.readline().split()
        try:
            yield party, int(number), Path(folder)
        finally:
            party.kill()


def killed_and_nothing_left(party: subprocess.Popen[str], driver: int, folder: Path, seconds: float = PATIENCE) -> None:
    ours = [one for one in map(handle, family(driver)) if one]
    assert ours
    assert folder.is_dir()
    party.kill()
    party.wait(PATIENCE)
    assert [one for one in ours if not select.select([one], (), (), seconds)[0]] == []
    assert not folder.exists()
    for one in ours:
        os.close(one)


@pytest.mark.parametrize("whose", ["given", "own"])
def test_a_driver_at_work_ends_with_its_party_and_deletes_its_folder(
    whose: str, closed: dict[str, str], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(closed, monkeypatch)
    with party_on_ray(request.getfixturevalue("cluster") if whose == "given" else "") as (party, driver, folder):
        assert party.stdout is not None
        assert party.stdout.readline() == "[1]\n"
        killed_and_nothing_left(party, driver, folder)


def test_a_driver_that_begins_ends_with_its_party() -> None:
    with party_on_ray("") as (party, driver, folder):
        killed_and_nothing_left(party, driver, folder)


def test_a_driver_of_a_given_cluster_here_listens_on_this_machine_alone(
    cluster: str, closed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given(closed, monkeypatch)
    with party_on_ray(cluster) as (party, driver, _):
        assert party.stdout is not None
        assert party.stdout.readline() == "[1]\n"
        heard = [one for process in family(driver) for one in listened(process)]
        assert heard
        assert all(is_loopback(one.rpartition(":")[0]) for one in heard)
