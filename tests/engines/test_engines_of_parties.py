"""An engine from documents to a model: on the command line, and in one party's own file. Nobody else can tell it was there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.corpus.corpus_build import CorpusBuild
from securetm.corpus.records import Columns
from securetm.federation.transcript import Transcript
from securetm.private_files import writing

from ..cli.conftest import SETTINGS, securetm, write_documents
from ..federation import conftest as organised
from ..federation.joined import NAMES, Organisations, trained
from .small_plan import plan

keys = organised.keys
ENGINE = '\n[engine]\nkind = "pool"\nworkers = 2\n'


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents of five parties in small blocks of two files."""
    folder = tmp_path_factory.mktemp("built")
    write_documents(folder / "documents.jsonl", 60)
    command = ("corpus", "build", str(folder / "documents.jsonl"), "--out", str(folder / "stored"))
    said = securetm(*command, "--block-documents", "16", "--shards", "2", "--json")
    assert said.code == 0, said.err
    return folder / "stored"


def messages(run: Path) -> list[Any]:
    transcript = Transcript(run / "transcript")
    try:
        return transcript.rows("SELECT channel, sender, receiver, bytes, content FROM messages ORDER BY at")
    finally:
        transcript.close()


def run(built: Path, out: Path, model: str, *more: str) -> Path:
    options = ["--corpus", str(built), "--partition", "column", "--profile", "open", "--model", model, "--topics", "3"]
    settings = SETTINGS[1:] if model == "lda" else SETTINGS
    options += [part for setting in settings for part in ("--set", setting)]
    said = securetm("run", *options, "--rounds", "2", "--no-comparison", "--record", "--out", str(out), "--json", *more)
    assert said.code == 0, said.err
    return out


def organisations(keys: Path, folder: Path, engine: str) -> Organisations:
    """Five organisations, of which the first has its documents in blocks on disk and chooses its own engine."""
    made = Organisations.of(keys, folder, plan(rounds=2))
    for number, name in enumerate(NAMES):  # the same documents have the same names, whichever engine computes
        with writing(made.home(name) / "names.key") as secret:
            secret.write(bytes([number]) * 32)
    file = made.write(NAMES[0], privacy=engine)
    file.write_text(file.read_text("utf-8").replace("documents.jsonl", "stored"), "utf-8")
    CorpusBuild(str(file.parent / "documents.jsonl"), file.parent / "stored", Columns(), block_documents=8, shards=2).run()
    return made


@pytest.mark.slow
def test_nobody_hears_what_one_party_computes_with(keys: Path, tmp_path: Path) -> None:
    found = {}
    for name, engine in (("alone", ""), ("together", ENGINE)):
        made = organisations(keys, tmp_path / name, engine)
        joinings = {member: made.prepared(member) for member in NAMES}
        assert len(joinings[NAMES[0]].corpus.in_blocks().blocks()) > 1  # else no engine would be asked
        digests = {member: joining.agreement.digest for member, joining in joinings.items()}
        result, joined = trained(made, tmp_path / f"coordinator of {name}", joinings)
        assert joined.problems == {}
        reports = {member: {**report, "privacy": None} for member, report in joined.reports.items()}
        assert "engine" not in str(joined.told)
        found[name] = result, digests, reports
    (result, digests, reports), (again, digests_again, reports_again) = found["alone"], found["together"]
    for array, same in zip(result.state.values(), again.state.values(), strict=True):
        assert np.array_equal(array, same)
    assert digests == digests_again
    assert {member: report.keys() for member, report in reports.items()} == {
        member: report.keys() for member, report in reports_again.items()
    }
    assert not any("pool" in str(report) for report in reports_again.values())
