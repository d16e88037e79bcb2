"""An audit written down and read again: nothing is lost, and what was damaged or improved by hand is refused by name."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from securetm.errors import CannotWrite, NotAnAudit
from securetm.leakage.findings import Audit
from securetm.reports.audit_page import audit_page
from securetm.reports.audit_reading import read_record, write_record
from securetm.reports.findings import record

from .audits import AUDIT, FULL, large

Change = Callable[[dict[str, Any]], Any]


def written(tmp_path: Path, plain: Any) -> Path:
    path = tmp_path / "audit.json"
    path.write_text(plain if isinstance(plain, str) else json.dumps(plain), "utf-8")
    return path


@pytest.mark.parametrize("audit", [AUDIT, FULL, large(60)], ids=["small", "full", "large"])
def test_what_is_read_again_is_what_was_written(audit: Audit, tmp_path: Path) -> None:
    """With intervals that have no end, curves, refusals, and a page that is the same to the last byte."""
    read = read_record(write_record(audit, tmp_path, 6))
    assert read == audit
    assert audit_page(read, 6) == audit_page(audit, 6)


def test_no_more_examples_are_kept_than_were_wanted(tmp_path: Path) -> None:
    assert "river" not in write_record(AUDIT, tmp_path, 0).read_text("utf-8")
    assert all(finding.examples == () for finding in read_record(tmp_path).findings)


def test_the_folder_of_a_run_gives_the_only_audit_in_it(tmp_path: Path) -> None:
    with pytest.raises(NotAnAudit, match="nothing was kept"):
        read_record(tmp_path)
    write_record(AUDIT, tmp_path, 2)
    assert read_record(tmp_path) == AUDIT
    write_record(large(3), tmp_path, 2)
    with pytest.raises(NotAnAudit, match=r"it keeps several: name one of .*full\.json, .*quick\.json"):
        read_record(tmp_path)


def test_older_records_without_refusals_and_day_are_still_read(tmp_path: Path) -> None:
    plain = record(AUDIT, 2)
    del plain["refusals"], plain["made"]
    for finding in plain["findings"]:
        for name in ("delta", "epsilon_unit", "tests"):
            del finding[name]
    assert read_record(written(tmp_path, plain)) == AUDIT


DAMAGED: dict[str, tuple[Change, str]] = {
    "no findings": (lambda a: a.pop("findings"), "findings = .* is missing"),
    "findings that are none": (lambda a: a.update(findings={}), "must be a list"),
    "a finding that is none": (lambda a: a["findings"].append("x"), "finding 9.*must be a table"),
    "no verdict": (lambda a: a["findings"][0].pop("verdict"), "finding 1: verdict = .* is missing"),
    "a verdict that there is not": (lambda a: a["findings"][0].update(verdict="safe"), "must be one of refuted, not refuted"),
    "an improved verdict": (
        lambda a: a["findings"][0].update(verdict="not refuted"),
        "does not follow from an interval from 0.948",
    ),
    "a worsened verdict": (
        lambda a: a["findings"][1].update(verdict="refuted"),
        "finding 2: verdict = refuted does not follow",
    ),
    "nothing tried, and yet held": (lambda a: a["findings"][3].update(verdict="not refuted"), "finding 4.*does not follow"),
    "a value outside": (lambda a: a["findings"][0].update(value=0.1), "does not lie within its interval"),
    "a word for a number": (lambda a: a["findings"][0].update(low="much"), "low = 'much' must be a number"),
    "an unknown field": (lambda a: a["findings"][0].update(secure=True), "no setting called 'secure'"),
    "another count": (lambda a: a.update(refuted_claims=3), "refuted_claims = 3 does not follow"),
    "a lame curve": (lambda a: a["findings"][4]["curves"][0]["up"].pop(), "has not as many points as across"),
    "a curve of words": (lambda a: a["findings"][4]["curves"][0]["up"].__setitem__(0, "x"), "must be a number"),
    "a refusal without a reason": (lambda a: a["refusals"][0].pop("reason"), "reason = .* is missing"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_is_damaged_is_refused_by_name(name: str, tmp_path: Path) -> None:
    change, message = DAMAGED[name]
    plain = copy.deepcopy(json.loads(json.dumps(record(FULL, 2))))
    change(plain)
    with pytest.raises(NotAnAudit, match=message):
        read_record(written(tmp_path, plain))


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", '{"plan": 1}', "[" * 100_000, "\x00"])
def test_what_is_no_record_at_all_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(NotAnAudit):
        read_record(written(tmp_path, text))


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(NotAnAudit, match="No such file"):
        read_record(tmp_path / "absent.json")
    (tmp_path / "audit.json").write_bytes(b"\xff\xfe")
    with pytest.raises(NotAnAudit, match="no JSON"):
        read_record(tmp_path / "audit.json")


def test_a_folder_that_cannot_be_written_to_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite):
        write_record(AUDIT, tmp_path / "absent", 2)
