"""An audit written down and read again: nothing is lost, and what was damaged or improved by hand is refused by name."""

from __future__ import annotations

import json
import math
import stat
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from securetm.auditing.evidence import record
from securetm.auditing.record import Audit
from securetm.errors import Mistake
from securetm.reports.audits.records import read_record, write_record
from securetm.reports.audits.report import audit_page, write_audit, write_summary

from .audits import AUDIT, FULL, large


def written(tmp_path: Path, plain: Any) -> Path:
    path = tmp_path / "audit.json"
    path.write_text(plain if isinstance(plain, str) else json.dumps(plain), "utf-8")
    return path


def as_kept(audit: Audit) -> Audit:
    """The audit with what its examples show: words that did not leak are not kept."""
    shown = (replace(one, outcome=replace(one.outcome, examples=one.leaked)) for one in audit.findings)
    return replace(audit, findings=tuple(shown))


def test_what_is_read_again_is_what_was_written(tmp_path: Path) -> None:
    """With intervals that have no end, curves, refusals, and a page that is the same to the last byte."""
    read = read_record(write_record(FULL, tmp_path, 6))
    assert read == as_kept(FULL)
    assert audit_page(read, 6) == audit_page(FULL, 6)


def test_no_more_examples_are_kept_than_were_wanted(tmp_path: Path) -> None:
    assert "river" not in write_record(AUDIT, tmp_path, 0).read_text("utf-8")
    assert all(finding.outcome.examples == () for finding in read_record(tmp_path).findings)


def test_the_folder_of_a_run_gives_the_only_audit_in_it(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="nothing was kept"):
        read_record(tmp_path)
    write_record(AUDIT, tmp_path, 2)
    assert read_record(tmp_path) == as_kept(AUDIT)
    write_record(large(3), tmp_path, 2)
    with pytest.raises(Mistake, match=r"it keeps several: name one of .*full\.json, .*quick\.json"):
        read_record(tmp_path)


GONE = object()
DAMAGED: dict[str, tuple[tuple[str | int, ...], Any, str]] = {  # where, what stands there instead, and what is said of it
    "no findings": (("findings",), GONE, "the file: object missing required field `findings`"),
    "findings that are none": (("findings",), {}, "must be a list"),
    "a finding that is none": (("findings", 7), "x", "finding 8.*must be a table"),
    "no verdict": (("findings", 0, "verdict"), GONE, "finding 1: object missing required field `verdict`"),
    "no such verdict": (("findings", 0, "verdict"), "safe", "`verdict` in finding 1: expected .*refuted.not refuted"),
    "an improved verdict": (("findings", 0, "verdict"), "not refuted", "does not follow from an interval from 0.948"),
    "a worsened verdict": (("findings", 1, "verdict"), "refuted", "`verdict` in finding 2 is 'refuted'; it does not follow"),
    "nothing tried, and yet held": (("findings", 3, "verdict"), "not refuted", "finding 4.*does not follow"),
    "a verdict taken back": (("findings", 0, "verdict"), "not tested", "it does not follow from an interval from 0.948"),
    "a value outside": (("findings", 0, "value"), 0.1, "does not lie within its interval"),
    "a word for a number": (("findings", 0, "low"), "much", "`low` in finding 1: expected `float`, got `str`"),
    "an unknown field": (("findings", 0, "secure"), True, "there is no field called 'secure' in finding 1"),
    "another count": (("refuted_claims",), 3, "`refuted_claims` in the file is 3; it does not follow"),
    "a lame curve": (("findings", 4, "curves", 0, "up", -1), GONE, "must be the number of points of `across`"),
    "a curve of words": (("findings", 4, "curves", 0, "up", 0), "x", "in finding 5: expected `float`"),
    "a rate that is none": (("findings", 4, "curves", 0, "up", 2), 7, "is 7.0; it cannot lie on"),
    "a control that is gone": (("findings", 1, "chance"), GONE, "`chance` in finding 2 is missing"),
    "a number without end": (("findings", 1, "low"), math.nan, "`low` in finding 2 is nan; it is no number"),
    "a number too large": (("findings", 5, "seconds"), 1e308, "`seconds` in finding 6.* 1e.308; it is no number"),
    "a number too long": (("findings", 5, "tests"), 10**400, "`tests` in finding 6 is inf; it is no"),
    "a number deep inside": (("findings", 4, "curves", 0, "up", 2), 1e308, "`up 3` in finding 5, curve 1.* 1e.308; it is no"),
    "ends in the wrong order": (("findings", 7, "low"), 2.4, "finding 8: `low` is 2.4; it lies"),
    "more hits than tries": (("findings", 0, "hits"), 301, "finding 1: `hits` is 301; it must be from 0 to 300"),
    "hits that are not the value": (("findings", 0, "hits"), 290, "is not 290 of 300"),
    "an interval too narrow": (("findings", 1, "high"), 0.001, "`interval` in finding 2 is .*; it is narrower"),
    "a confidence of all": (("findings", 0, "confidence"), 1.0, "`confidence` in finding 1: expected `float` < 1"),
    "helpers below none": (("findings", 0, "helpers"), -1, "`helpers` in finding 1: expected `int` >= 0"),
    "a day that is none": (("made",), "yesterday", "`made` in the file: expected"),
    "a refusal of nobody": (("refusals", 0, "by"), "", "refusals.*: `by` is missing"),
    "a refusal without a reason": (("refusals", 0, "reason"), GONE, "refusals.*missing.* `reason`"),
}


def damaged(place: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    plain = whole = json.loads(json.dumps(record(FULL, 2)))
    for name in place[:-1]:
        plain = plain[name]
    if value is GONE:
        del plain[place[-1]]
    else:
        plain[place[-1]] = value
    return dict(whole)


@pytest.mark.parametrize("name", DAMAGED)
def test_what_is_damaged_is_refused_by_name(name: str, tmp_path: Path) -> None:
    place, value, message = DAMAGED[name]
    with pytest.raises(Mistake, match=message):
        read_record(written(tmp_path, damaged(place, value)))


def test_a_baseline_that_held_takes_the_verdicts_that_rest_on_it_with_it(tmp_path: Path) -> None:
    plain = damaged(("findings", 0, "verdict"), "not refuted")
    plain["findings"][0] |= {"value": 0.0, "hits": 0, "low": 0.0, "high": 0.013}
    with pytest.raises(Mistake, match=r"finding 2 is 'not refuted'; it does not follow .* a baseline that was not broken"):
        read_record(written(tmp_path, plain))


@pytest.mark.parametrize("command", ["\x1b[2J", "\x9b2J", "\r", "\u202e", "\ud800", "\x00"])
def test_what_a_terminal_would_obey_is_spelt_out(command: str, tmp_path: Path) -> None:
    plain = json.loads(json.dumps(record(FULL, 2)).replace("river", f"ri{json.dumps(command)[1:-1]}ver"))
    plain["title"] = plain["not_tried"][0] = plain["findings"][0]["why"] = plain["refusals"][0]["by"] = f"a{command}b"
    read = read_record(written(tmp_path, plain))
    for text in (
        read.title,
        read.not_tried[0],
        read.findings[0].outcome.why,
        read.refusals[0].by,
        read.findings[0].outcome.examples[0].original,
    ):
        assert command not in text
        assert "\\" in text
    plain["findings"][0]["verdict"] = f"safe{command}"
    with pytest.raises(Mistake, match="`verdict` in finding 1") as refused:
        read_record(written(tmp_path, plain))
    assert command not in str(refused.value)


def test_only_its_owner_can_read_what_was_recovered(tmp_path: Path) -> None:
    """Also where the files were there before, open to all."""
    places = [tmp_path / "audits" / "quick.json", tmp_path / "audit.html", tmp_path / "audit.md"]
    for path in places[1:]:
        path.touch(mode=0o644)
    write_record(AUDIT, tmp_path, 2)
    write_audit(AUDIT, places[1], 2)
    write_summary(AUDIT, places[2], 2)
    assert [stat.filemode(path.stat().st_mode) for path in places] == ["-rw-------"] * 3
    assert stat.filemode((tmp_path / "audits").stat().st_mode) == "drwx------"
    write_audit(AUDIT, tmp_path / "silent.html", 0)
    assert (tmp_path / "silent.html").stat().st_mode & 0o044  # what quotes nothing may be shown to anybody


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", '{"plan": 1}', "[" * 100_000, "\x00"])
def test_what_is_no_record_at_all_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(Mistake):
        read_record(written(tmp_path, text))


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="No such file"):
        read_record(tmp_path / "absent.json")
    (tmp_path / "audit.json").write_bytes(b"\xff\xfe")
    with pytest.raises(Mistake, match="no JSON"):
        read_record(tmp_path / "audit.json")
