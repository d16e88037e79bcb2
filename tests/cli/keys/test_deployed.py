"""The tables of docs/how-to/deploy.md, played in the folders of the Kubernetes files: a volume, and a ConfigMap beside it."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from ..conftest import Said, securetm

ROOT = Path(__file__).resolve().parents[3]
FIVE = tuple(f"hospital-{letter}" for letter in "abcde")
MEMBER, FILES = "/var/lib/securetm/member", "/files"  # where the pods mount both
PLAN = """
profile = "masked"
[model]
name = "lda"
n_topics = 2
[vocabulary]
min_documents = 1
max_share = 1.0
most_candidates = 500
[coordinator]
listen = "127.0.0.1:8470"
keys = "{member}/home/keys"
roster = "{member}/roster.toml"
out = "{member}/run"
"""
PARTY = """
name = "{name}"
home = "{member}/home"
roster = "{member}/roster.toml"
[data]
source = "documents.jsonl"
identity = "notes"
"""


class Pod:
    """One member: the volume of its home, its files, and the command of its manifest."""

    def __init__(self, place: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.name, self._go, role = name, monkeypatch.chdir, "coordinator" if name == "coordinator" else "party"
        self.member, self.files = place / name / "member", place / name / "files"
        self.member.mkdir(parents=True, mode=0o700)
        self.files.mkdir()
        (self.files / "plan.toml").write_text(PLAN.format(member=self.member))
        if role == "party":
            (self.files / "PARTY.toml").write_text(PARTY.format(name=name, member=self.member))
            lines = (f'{{"text": "word{n % 7} other{n % 5}"}}\n' for n in range(120))
            (self.files / "documents.jsonl").write_text("".join(lines))
        manifest = (ROOT / "deploy" / "kubernetes" / f"{role}.yaml").read_text()
        (command,) = re.findall(r"^ +args: \[(.*)\]$", manifest, re.M)
        self.command = command.replace(",", " ").replace(FILES, str(self.files))
        assert f"workingDir: {MEMBER}" in manifest

    def types(self, command: str) -> Said:
        self._go(self.member)
        return securetm(*shlex.split(command.removeprefix("securetm ")))

    def done(self, command: str) -> Said:
        said = self.types(command)
        assert said.code == 0, (self.name, command, said.err)
        return said


class Played:
    """A coordinator and parties, and what the page says that each types."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        page = (ROOT / "docs" / "how-to" / "deploy.md").read_text()
        page = page[page.index("| what happened |") : page.index("A request goes")]
        rows = (row.strip("|").split("|") for row in page.splitlines()[2:] if row)
        self.table = {what.strip(): [cell.strip(" `") for cell in cells] for what, *cells in rows}
        self.pods = {name: Pod(place, name, monkeypatch) for name in ("coordinator", *FIVE)}

    def happens(self, what: str, party: str) -> None:
        """Both type what the page says, and the request and the roster are carried."""
        theirs, ours = (cell.replace(" hospital-b.request", "") for cell in self.table[what])
        if theirs != "nothing":
            self.pods[party].done(_by(party, theirs))
            request = f"{party}.request"
            shutil.copy(self.pods[party].member / request, self.pods["coordinator"].member / request)
        self.pods["coordinator"].done(_by(party, ours))

    def accepted_by(self, *parties: str) -> None:
        hub = self.pods["coordinator"].member / "roster.toml"
        fingerprint = re.findall(r"# Fingerprint: ([\d ]+)", hub.read_text())[0]
        for name in parties:
            shutil.copy(hub, self.pods[name].member / "roster.toml")
            self.pods[name].done(f"{self.table['there is a new roster'][0]} --fingerprint '{fingerprint}'")

    def joins(self, name: str) -> str:
        """What the command of the manifest says before its first connection; empty if all is well."""
        said = self.pods[name].types(f"{self.pods[name].command} --dry-run")
        return said.err if said.code else ""


def _by(party: str, command: str) -> str:
    return re.sub(r"hospital-[a-z]", party, command)


def test_keys_and_rosters_change_by_the_same_commands_in_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played, (first, *others), gone = Played(tmp_path, monkeypatch), FIVE, FIVE[1]
    assert "roster.toml does not exist" in played.joins(first)  # and no keys: the pod starts again and again
    played.happens("the federation begins", first)
    for name in others:
        played.happens("a party joins later", name)
    played.accepted_by(*FIVE)
    assert {name: said for name in FIVE if (said := played.joins(name))} == {}
    played.happens("your own keys are to change", first)
    played.accepted_by(first)
    played.happens("a key was stolen", gone)
    left = [name for name in FIVE if name != gone]
    played.accepted_by(*left)
    assert {name: said for name in left if (said := played.joins(name))} == {}
