"""Keys, passphrases, prekeys, documents and vectors are in no log, object's text, traceback, argument or environment."""

from __future__ import annotations

import base64
import gc
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from securetm.corpus.corpus import Corpus
from securetm.credentials.homes import KEYS
from securetm.credentials.keys import IDENTITY, TLS, Keys, Passphrase, write_key
from securetm.federation.coordinator.status import EVENTS
from securetm.federation.folder import begin
from securetm.federation.party.status import LOGGED
from securetm.federation.simulation.simulation import InProcess, make_party, train
from securetm.stages import Unwatched
from securetm.trial.files import HOME, TrialFolder
from securetm.trial.processes import MemberProcesses

from ..cli.conftest import securetm
from ..federation.conftest import small_plan

PASSPHRASE = "correct-horse-battery-staple"
PATIENCE = 300.0
pytestmark = pytest.mark.own_draws


def forms_of(secret: bytes) -> Iterator[str]:
    """A secret as a text may show it, whole or its first sixteen bytes."""
    for part in (secret, secret[:16]):
        yield part.hex()
        yield base64.b64encode(part).decode().rstrip("=")[: len(part) * 4 // 3]
        yield repr(part)[2:-1]
        yield repr(list(part))[1:-1]
        yield str(int.from_bytes(part))
        yield str(int.from_bytes(part, "little"))


def shown(text: str, secrets: Mapping[str, bytes]) -> list[str]:
    """Which secrets this text shows."""
    lower = text.lower()
    return [name for name, secret in secrets.items() if any(form in lower for form in map(str.lower, forms_of(secret)))]


def test_the_search_finds_a_secret_in_every_form() -> None:
    secret = bytes(range(100, 132))
    for form in forms_of(secret):
        assert shown(f"a log line {form} goes on", {"key": secret}) == ["key"]
    assert shown("a log line", {"key": secret}) == []


# ---- texts of objects ----------------------------------------------------------------------------------------------


class Opened(InProcess):
    """Parties whose stores stay open when the run ends, so that the test can look at them."""

    def close(self) -> None:
        """The test closes them."""


def reached(begun: Iterable[Any], most: int = 200_000) -> Iterator[Any]:
    """Every object of securetm that can be reached from these."""
    seen: set[int] = set()
    waiting = list(begun)
    while waiting and len(seen) < most:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        package = type(thing).__module__.split(".")[0]
        if package == "securetm":
            yield thing
        if package == "securetm" or type(thing) in (dict, list, tuple, set, frozenset):
            waiting.extend(gc.get_referents(thing))


def test_no_text_of_an_object_shows_a_secret(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    run = begin(tmp_path / "run", small_plan(profile="masked", model__batch=25, training__rounds=2), five)
    parties = Opened({name: make_party(run, name) for name in run.members})
    train(run, Unwatched(), parties=parties)
    party = parties.parties["north"]
    prepared = party.session.aggregation._prekeys.prepared()  # type: ignore[union-attr]
    identity = party.store.get("identity")
    assert identity is not None
    secrets = {
        "the identity": identity,
        **{f"secret with {peer}": secrets[:32] for peer, secrets in prepared.peers.items()},
        **{f"seed {n}": key for n, key in enumerate(prepared.seeds[:4])},
        **{f"bundle {n}": bundle[:32] for n, bundle in prepared.bundles.items()},
    }
    met = 0
    for thing in reached([party]):
        met += 1
        assert shown(repr(thing), secrets) == [], type(thing)
    assert met > 30
    for one in parties.parties.values():
        one.close()


# ---- processes -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> TrialFolder:
    """A trial in which one party's keys have a passphrase."""
    said = securetm("init", str(tmp_path_factory.mktemp("place") / "trial"), "--rounds", "2", "--json")
    assert said.code == 0, said.err
    made = TrialFolder(Path(said.json["folder"]), tuple(said.json["parties"]))
    keys = made.party("scipy") / HOME / KEYS
    for name in (IDENTITY, TLS):
        key = load_pem_private_key((keys / name).read_bytes(), None)
        (keys / name).unlink()
        write_key(keys / name, key, Passphrase(PASSPHRASE))  # type: ignore[arg-type]
    (made.path / "passphrase").write_text(PASSPHRASE)
    (made.path / "passphrase").chmod(0o600)
    return made


def secrets_of(trial: TrialFolder) -> dict[str, bytes]:
    """What every member holds, and nobody else may read."""
    found = {"the passphrase": PASSPHRASE.encode()}
    for name, home in {"coordinator": trial.coordinator, **{one: trial.party(one) for one in trial.parties}}.items():
        keys = Keys.open(home / HOME / KEYS, Passphrase(PASSPHRASE) if name == "scipy" else None)
        number = keys.tls_key.private_numbers().private_value
        found[f"the identity of {name}"] = keys.identity
        found[f"the TLS key of {name}"] = number.to_bytes(32, "big")
        found[f"the TLS key of {name} in its file"] = base64.b64decode(b"".join(keys.tls_key_pem.splitlines()[1:-1]))[-60:]
    return found


def check_text(text: str, trial: TrialFolder, where: str) -> None:
    assert PASSPHRASE not in text, where
    assert shown(text, secrets_of(trial)) == [], where
    assert "PRIVATE KEY" not in text, where
    assert re.search(r"[0-9a-f]{80,}|[A-Za-z0-9+/]{100,}|(\\x[0-9a-f]{2}){8,}|(\d+, ){20,}", text) is None, where  # a vector


@pytest.mark.slow
def test_no_secret_is_in_logs_arguments_or_environments_of_a_whole_run(trial: TrialFolder, tmp_path: Path) -> None:
    named = ("--passphrase-file", str(trial.path / "passphrase"), "--debug")
    watched: dict[int, str] = {}
    with MemberProcesses(tmp_path) as processes:
        for number, command in enumerate(trial.commands):
            log = ("--log=json",) if number % 2 else ("--log", "json")
            processes.start(f"member-{number}", (*command, *named, *log))
        for one in processes.members:
            place = Path("/proc") / str(one.number)
            assert one.running.poll() is None, one.log.read_text()
            watched[one.number] = (place / "cmdline").read_text() + (place / "environ").read_text()
        for one in processes.members:
            assert one.running.wait(PATIENCE) == 0, one.log.read_text()
            check_text(one.log.read_text(), trial, one.log.name)
    for text in watched.values():
        check_text(text, trial, "arguments and environment")
    for log in trial.path.rglob("*.jsonl"):
        if log.name != "documents.jsonl":
            check_text(log.read_text(), trial, log.name)
    texts = [json.loads(line)["text"] for line in (trial.party("scipy") / "documents.jsonl").read_text().splitlines()]
    logged = "".join(one.log.read_text() for one in processes.members)
    assert not [text for text in texts if len(text) > 30 and text[:30] in logged]
    for number, one in enumerate(processes.members):
        known = LOGGED if number else EVENTS
        lines = [json.loads(line) for line in one.log.read_text().splitlines() if line.startswith("{")]
        assert {"started", "connected", "finished"} <= {line["event"] for line in lines}
        assert [line for line in lines if set(line) != {"at", "event", *known[line["event"]]}] == []
        assert not [line for line in lines if len(texts) in line.values()]  # the number of documents


@pytest.mark.parametrize("break_it", ["policy", "plan", "documents", "certificate", "passphrase"])
def test_no_secret_is_in_a_traceback(break_it: str, trial: TrialFolder, tmp_path: Path) -> None:
    place = trial.party("scipy")
    breaking = {
        "policy": (place / "PARTY.toml", lambda text: text + "\n"),
        "plan": (place / "plan.toml", lambda text: text.replace("rounds = 2", "rounds = 3")),
        "documents": (place / "documents.jsonl", lambda text: text + "{"),
        "certificate": (place / "roster.toml", lambda text: text.replace("version = ", "version = 9")),
        "passphrase": (trial.path / "passphrase", lambda text: "another-passphrase-altogether"),
    }
    path, change = breaking[break_it]
    before = path.read_text()
    path.write_text(change(before))
    try:
        file = str(trial.path / "passphrase")
        said = securetm("--debug", "join", str(place / "PARTY.toml"), "--dry-run", "--passphrase-file", file)
    finally:
        path.write_text(before)
    if said.code != 0:
        assert "Traceback" in said.err
    check_text(said.err + said.out, trial, break_it)
    assert "another-passphrase" not in said.err
