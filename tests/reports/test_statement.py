"""The sheet that somebody signs: one page in every form, what it says of a bound, and what binds it to its annex."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest

from securetm.reports.audits.report import audit_page
from securetm.reports.document import Document
from securetm.reports.markdown import in_markdown
from securetm.reports.pages import in_html
from securetm.reports.statement import sources as report_sources
from securetm.reports.statement.annex import annex, bind
from securetm.reports.statement.pdf import in_pdf, sheets_of
from securetm.reports.statement.seal import annex_marks, compare_statement, is_as_sealed, read_marks, sealed
from securetm.reports.statement.statement import Statement, sheet

from .audits import AUDIT
from .said import report, stated

DIGEST, OTHER = "12" * 32, "34" * 32
NAMES = {
    "Cyrillic": "Больница",
    "Greek": "Νοσοκομείο",
    "Arabic": "مستشفى",
    "Hebrew": "חולים",
    "Devanagari": "अस्पताल",
    "Chinese": "北京协和医院",
    "Japanese": "東京大学びょういん",
    "Korean": "서울대학교병원",
    "Tamil": "மருத்துவமனை",
    "Thai": "โรงพยาบาล",
    "Armenian": "Հիվանդանոց",
}
NO_FONT = "ᠡᠮᠨᠡᠯᠭᠡ"  # Mongolian letters


@pytest.fixture(autouse=True)
def no_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_sources, "evidence_folder", lambda: tmp_path / "no evidence")


def sheet_of(statement: Statement, **annexes: str) -> Document:
    return sheet(statement, DIGEST, "page.statement.json", {name.replace("_", "."): digest for name, digest in annexes.items()})


# ---- what it says --------------------------------------------------------------------------------------------------


def test_what_our_attacks_read_is_that_of_this_model_and_never_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    said = stated("masked", model="lda").bound
    evidence = json.loads((report_sources.evidence_folder() / "masked--lda.json").read_text("utf-8"))
    assert evidence["model"] == "lda"
    assert len(said) > 1
    assert all("our own trial of lda" in one for one in said[1:])
    assert all("%" in one for one in said[1:])


# ---- its forms -----------------------------------------------------------------------------------------------------


def pdf_text(content: bytes) -> str:
    from pypdf import PdfReader

    return " ".join(one.extract_text() for one in PdfReader(io.BytesIO(content)).pages)


@pytest.mark.parametrize("profile", ["open", "fortress", "iftm"])
def test_it_is_one_sheet_with_names_in_any_script_and_many_parties(profile: str) -> None:
    parties = tuple(NAMES.values()) + tuple(f"university-hospital-of-a-town-with-a-long-name-{n}" for n in range(40))
    made = in_pdf(sheet_of(stated(profile, everybody=parties), page_annex_pdf=OTHER))
    assert sheets_of(made) == 1


def test_names_in_every_script_are_in_the_pdf_with_their_glyphs_embedded() -> None:
    from pypdf import PdfReader

    made = in_pdf(sheet_of(stated(members=(NO_FONT, *NAMES.values()), everybody=(NO_FONT, *NAMES.values()))))
    reader = PdfReader(io.BytesIO(made))
    fonts = [font.get_object() for page in reader.pages for font in page["/Resources"]["/Font"].values()]  # type: ignore[index]
    inner = [font["/DescendantFonts"][0].get_object()["/FontDescriptor"] for font in fonts]
    assert all({"/FontFile2", "/FontFile3"} & set(one) for one in inner), "a font is not embedded"
    assert ".notdef" not in str(inner)
    text = pdf_text(made)
    for script, name in NAMES.items():
        if script not in ("Arabic", "Hebrew", "Devanagari", "Tamil"):  # whose text comes out in the order of the glyphs
            assert name in text
    assert "U+1821" in text.replace(" ", "")  # a letter that no font has is spelt as its number


@pytest.mark.parametrize("form", [in_html, in_markdown, lambda made: pdf_text(in_pdf(made))], ids=["html", "md", "pdf"])
def test_every_form_says_all_of_it_and_has_a_place_for_a_signature(form: Callable[[Document], str]) -> None:
    statement = stated("dp-distributed")
    text = " ".join(unescape(form(sheet_of(statement))).replace("\\", "").split())
    said = (*statement.bound, *statement.failure, *statement.not_covered, *statement.settings, *statement.documents)
    for wanted in (*said, statement.neighbours, "Name", "Function", "Place, date", "Signature", *statement.files.values()):
        assert wanted in text


def test_the_pdf_is_tagged_dated_and_the_same_for_the_same_facts() -> None:
    from pypdf import PdfReader

    made = in_pdf(sheet_of(stated()))
    root = PdfReader(io.BytesIO(made)).trailer["/Root"]
    assert root["/MarkInfo"]["/Marked"]  # type: ignore[index]
    assert root["/StructTreeRoot"]  # type: ignore[index]
    assert root["/Lang"] == "en"  # type: ignore[index]
    assert b"pdfuaid:part>1" in made
    assert "20261124" in str(PdfReader(io.BytesIO(made)).metadata)
    assert "2026-11-24" in pdf_text(made)
    assert in_pdf(sheet_of(stated())) == made


def test_no_text_becomes_markup_and_no_name_a_mark() -> None:
    evil = '#panic("x") *b* <!-- securetm-statement:' + OTHER + " -->"
    made = sheet_of(stated(everybody=(evil, "north")))
    for content in (in_html(made).encode(), in_markdown(made).encode(), in_pdf(made)):
        marks = read_marks(content)
        assert marks is not None
        assert marks.statement == DIGEST
    assert "#panic" in pdf_text(in_pdf(made))


# ---- what binds it -------------------------------------------------------------------------------------------------


def test_each_page_of_an_annex_names_the_statement_and_the_sheet_names_the_annex() -> None:
    from pypdf import PdfReader

    made = in_pdf(bind(annex(report("dp-distributed")), DIGEST, "2026-11-24"))
    pages = PdfReader(io.BytesIO(made)).pages
    assert len(pages) > 1
    assert all("Annex to the statement 1212 1212 1212 1212" in one.extract_text() for one in pages)
    made = in_pdf(sheet_of(stated(), page_annex_pdf=OTHER))
    assert OTHER in pdf_text(made).replace(" ", "")


@pytest.mark.parametrize("form", ["html", "md", "pdf"])
def test_a_sheet_that_was_changed_is_not_as_sealed(form: str) -> None:
    made = sheet_of(stated())
    content = sealed(in_pdf(made) if form == "pdf" else (in_html(made) if form == "html" else in_markdown(made)).encode())
    marks = read_marks(content)
    assert marks is not None
    assert is_as_sealed(content, marks.own)
    middle = len(content) // 2
    assert not is_as_sealed(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :], marks.own)
    assert not is_as_sealed(content + b"\n", marks.own)


def test_an_annex_of_another_statement_is_found_though_the_sheet_names_its_digest(tmp_path: Path) -> None:
    import hashlib

    statement = stated()
    content = statement.as_file()
    digest = hashlib.sha256(content).hexdigest()
    (tmp_path / "page.statement.json").write_bytes(content)
    (tmp_path / "page.annex.md").write_text(in_markdown(bind(annex(report()), OTHER, "")), "utf-8")
    technical = tmp_path / "page.annex-quick.html"
    technical.write_text(audit_page(AUDIT, 0, "Annex", annex_marks(digest)), "utf-8")
    named = {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in (tmp_path / "page.annex.md", technical)}
    made = sheet(statement, digest, "page.statement.json", named)
    (tmp_path / "page.md").write_bytes(sealed(in_markdown(made).encode()))
    assert compare_statement(tmp_path / "page.md").changed == ("page.annex.md is the annex of another statement",)
    technical.write_bytes(b"what was not tried")
    assert any("page.annex-quick.html is not the file" in one for one in compare_statement(tmp_path / "page.md").changed)
