"""The page to sign and its sheet: answers, words, figures of the record, what binds them, and how a browser shows it."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from msgspec.structs import replace

from securetm.auditing.attacks import attack_names
from securetm.auditing.record import HELD, NOT_TESTED, OPEN
from securetm.auditing.regulators import CRITERIA, LINKING, NOT_TRIED, SCOPES, SINGLING_OUT, THE_MODEL, outcome_of
from securetm.plans.profiles import read_profile
from securetm.reports.audits.report import audit_page
from securetm.reports.audits.wording import figure, tries
from securetm.reports.document import Document, Table
from securetm.reports.markdown import in_markdown
from securetm.reports.pages import in_html
from securetm.reports.statement import sources as report_sources
from securetm.reports.statement.annex import annex, bind, signed_report
from securetm.reports.statement.guesses import right_guesses
from securetm.reports.statement.pdf import in_pdf, sheets_of
from securetm.reports.statement.questions import SignedReport
from securetm.reports.statement.seal import annex_marks, compare_statement, is_as_sealed, read_marks, sealed
from securetm.reports.statement.statement import Statement, sheet

from .audits import AUDIT, CLAIM, IDLE, LEAK, changed
from .browser import Tab
from .said import FINGERPRINTS, audit_of, report, sources, stated
from .test_budget_page import Seen

READ, PARTY, READER, COLLUDE, LIES = range(5)


@pytest.fixture(autouse=True)
def own_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No evidence but that which a test puts there."""
    monkeypatch.setattr(report_sources, "evidence_folder", lambda: tmp_path)
    return tmp_path


def texts(of: SignedReport) -> dict[str, str]:
    """What each form of the page shows, without its markup and breaks."""
    from pypdf import PdfReader

    made = annex(of)
    found = {
        "page": " ".join(Seen(in_html(made)).text),
        "text": in_markdown(made).replace("\\", ""),
        "pdf": " ".join(sheet.extract_text() for sheet in PdfReader(io.BytesIO(in_pdf(made))).pages),
    }
    return {name: re.sub(r"\s+", " ", text.replace("\N{NO-BREAK SPACE}", " ")) for name, text in found.items()}


# ---- answers -------------------------------------------------------------------------------------------------------


def test_what_an_audit_left_out_for_a_reason_is_named_with_it() -> None:
    why = "to speak of 0.1 % false alarms it needs 3,688 documents that were not trained on, and this run has 14"
    audit = replace(audit_of(CLAIM), not_tried=(f"the attack “Who was in it” (membership): {why}", "the attack “X” (y)"))
    of = signed_report(sources("masked", audit))
    assert f"“Who was in it”: {why}" in of.not_tried


def test_each_attempt_answers_the_question_about_its_adversary() -> None:
    helped = changed(LEAK, helpers=2)
    lying = changed(LEAK, threat_model="active_coordinator")
    reader = changed(LEAK, threat_model="model_reader", adversary="model reader")
    other = changed(LEAK, adversary="party")
    for number, one in {READ: LEAK, PARTY: other, READER: reader, COLLUDE: helped, LIES: lying}.items():
        standings = [answer.standing for answer in report("masked", one).answers]
        also = {READ: {COLLUDE, LIES}, PARTY: {COLLUDE}}.get(number, set())  # who can do no less than one alone
        assert standings == [OPEN if place == number or place in also else NOT_TESTED for place in range(5)]
    three = changed(LEAK, helpers=3)  # that three can do something says nothing of two
    assert report("masked", three).answers[COLLUDE].standing == NOT_TESTED
    assert report("masked", changed(CLAIM, helpers=3)).answers[COLLUDE].standing == HELD


# ---- what was spent, and what is recommended -----------------------------------------------------------------------


def test_the_most_right_guesses_are_those_of_randomised_response() -> None:
    """Whoever answers truly with probability p, and falsely else, is guessed rightly with p, and spends ln(p / (1 - p))."""
    assert right_guesses(0.0, 0.0) == 0.5
    assert right_guesses(1.0986122886681098, 0.0) == pytest.approx(0.75)
    assert right_guesses(0.0, 0.1) == pytest.approx(0.55)  # told outright once in ten times, a coin else
    assert right_guesses(1e9, 0.0) == 1.0


# ---- every form ----------------------------------------------------------------------------------------------------

_GROUPS = re.compile(r"[\d.]+ for \d+ documents \(delta = [\de.-]+\)")
CONSTANTS = {"100", "50", "99", "256", "1,000", "2", "1", "0"}  # of sentences that stand on every page
OPINIONS = {"28", "2024", "05", "2014"}  # the numbers of those that the page names


@pytest.mark.parametrize("profile", ["masked", "dp-distributed"])
def test_every_figure_of_every_form_is_one_of_the_record(profile: str) -> None:
    """Whatever digits are left over when what the records say is taken away are of sentences that never change."""
    tried = changed(CLAIM, profile=profile)
    leak = changed(LEAK, profile=profile)
    of = report(profile, tried, leak)
    found = LEAK.outcome.measured
    record = [figure(found), tries(found), "trial", "0.1.0", "2026-11-22", "2026-11-23"]
    record += ["ab" * 32, "cd" * 32, "ef" * 32, "01" * 32, read_profile(profile).digest.hex()]
    record += FINGERPRINTS
    record += ["28 messages, 4,411 bytes", "28 messages, 1,432 bytes", "7 rounds"]
    if profile == "dp-distributed":
        record += [
            "epsilon = 2",
            "1e-05",
            "100,000",
            "88.1",
            *_GROUPS.findall(str(of.spent)),
        ]
    for name, text in texts(of).items():
        for said in record:
            plain = said.replace("\N{NO-BREAK SPACE}", " ")
            assert plain in text, (name, plain)
            text = text.replace(plain, "")
        assert not re.search(r"\b(TPR|FPR|false positive|likelihood ratio|Bonferroni|Clopper)\b", text)
        left = set(re.findall(r"\d[\d,.]*\d|\d", re.sub(r"sheet \d / \d", "", text)))
        assert left <= CONSTANTS | OPINIONS | {str(number) for number in range(len(attack_names()) + 1)}, (
            name,
            left,
        )  # and counts of attempts


def test_the_questions_of_regulators_have_the_figures_of_the_record_in_every_form() -> None:
    member = changed(LEAK, attack="membership", sees=("model", "vocabulary"))
    of = report("masked", LEAK, member, changed(LEAK, attack="membership", baseline=True))
    asked = {(one.criterion, one.scope): one for one in of.regulators}
    assert len(asked) == len(CRITERIA) * len(SCOPES)
    linked, singled = asked[LINKING, THE_MODEL], asked[SINGLING_OUT, THE_MODEL]
    assert (linked.figure, linked.value, linked.attempts) == (figure(member.outcome.measured), member.outcome.measured.value, 1)
    assert (singled.outcome, singled.value) == (NOT_TRIED, None)
    assert linked.outcome == outcome_of(member)
    for text in texts(of).values():
        assert f"{linked.outcome}: {linked.figure} {linked.measure}".replace("\N{NO-BREAK SPACE}", " ") in text
        assert "does not say that the model is anonymous" in text
    assert report("masked").regulators == ()
    assert all("Nothing of this was tried on this run" in text for text in texts(report("masked")).values())


@pytest.mark.parametrize("profile", ["masked", "iftm"])
def test_a_pdf_has_at_most_four_sheets_and_is_the_same_to_the_last_byte(profile: str) -> None:
    from pypdf import PdfReader

    made = annex(report(profile, *(changed(one, profile=profile) for one in (CLAIM, LEAK, IDLE))))
    first = in_pdf(made)
    assert first == in_pdf(made)
    assert len(PdfReader(io.BytesIO(first)).pages) <= 4


def test_five_marks_stand_on_top_of_every_form() -> None:
    of = report("masked", CLAIM, LEAK, changed(CLAIM, helpers=2))
    first = annex(of).sections[0]
    (table,) = (block for block in first.blocks if isinstance(block, Table))
    assert [row[:2] for row in table.rows] == [(one.question, one.standing) for one in of.answers]
    for text in texts(of).values():
        places = [text.index(one.question) for one in of.answers]
        assert places == sorted(places)
        assert places[-1] < text.index(of.recommendation)


# ---- the sheet -------------------------------------------------------------------------------------------------------------


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


# ---- in a real browser -----------------------------------------------------------------------------------------------------


SCREEN = (1280, 1080)
_HEIGHT = "document.documentElement.scrollHeight"
_BESIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
_FOLDED = "JSON.stringify([...document.querySelectorAll('details')].map(e => e.querySelector('summary').innerText))"


def shown(tab: Tab, folder: Path, profile: str, width: int, height: int = 900) -> None:
    page = folder / "report.html"
    of = report(profile, *(changed(one, profile=profile) for one in (CLAIM, LEAK, IDLE)))
    page.write_text(in_html(annex(of)), "utf-8")
    tab.wide(width, height)
    tab.open(page)


@pytest.mark.parametrize("profile", ["masked", "dp-distributed"])
def test_it_is_two_screens_and_only_what_is_beside_the_point_is_folded(tab: Tab, tmp_path: Path, profile: str) -> None:
    shown(tab, tmp_path, profile, *SCREEN)
    assert float(str(tab.asks(_HEIGHT))) <= 2 * SCREEN[1]
    assert tab.requested() == [(tmp_path / "report.html").as_uri()]
    assert tab.complaints() == []
    folded = json.loads(str(tab.asks(_FOLDED)))
    assert "Fingerprints" in folded
    assert not {"Recommendation", "Five questions", "What was spent", "What regulators ask", "Signature"} & set(folded)


@pytest.mark.parametrize("profile", ["dp-distributed", "iftm"])
def test_the_sheet_prints_on_one_sheet_and_every_sheet_of_its_annex_names_the_statement(
    tab: Tab, tmp_path: Path, profile: str
) -> None:
    from pypdf import PdfReader

    sheet, second = tmp_path / "sheet.html", tmp_path / "annex.html"
    sheet.write_text(in_html(sheet_of(stated(profile), page_annex_html=DIGEST)), "utf-8")
    second.write_text(in_html(bind(annex(report(profile, changed(LEAK, profile=profile))), DIGEST, "2026-11-24")), "utf-8")
    tab.open(sheet)
    assert len(PdfReader(io.BytesIO(tab.pdf())).pages) == 1
    assert tab.complaints() == []
    tab.open(second)
    pages = PdfReader(io.BytesIO(tab.pdf())).pages
    assert len(pages) > 1
    assert all("Annex to the statement 1212 1212 1212 1212" in page.extract_text() for page in pages)


@pytest.mark.parametrize("width", [320, 700])
def test_nothing_sticks_out_of_a_narrow_screen(tab: Tab, tmp_path: Path, width: int) -> None:
    shown(tab, tmp_path, "dp-distributed", width)
    tab.asks("document.querySelectorAll('details').forEach(e => e.open = true)")
    assert tab.asks(_BESIDE) == 0
