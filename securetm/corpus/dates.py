"""Reads the dates of documents, as ISO 8601 writes them, and puts each into its year, month or day. It guesses nothing.

A date is `2026-11-23`, `2026-11` or `2026`, with or without a time after it. `11/23/2026` may be two dates, so it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime

from securetm.contracts import Array
from securetm.errors import Mistake

PERIODS = ("year", "month", "day")
MOST_GAPS = 1200  # periods from the first to the last: with more, those without a document are left out
_LENGTHS = {"year": 4, "month": 7, "day": 10}
_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?", re.ASCII)
_LONGEST_FORM = 30  # characters of a wrong date's form that are shown


def periods_of(dates: Array | None, period: str, where: str) -> list[str]:
    """Returns the year, month or day of each document, or refuses the first date that is none."""
    if dates is None:
        raise Mistake(
            "the documents of {where} have no dates",
            hint="name the column of the date: --date COLUMN (in a plan date of [corpus], in Python date=)",
            where=where,
        )
    found: dict[str, str] = {}
    for number, text in enumerate(map(str, dates), start=1):
        if text not in found:
            whole = _read(text)
            if whole is None or len(whole) < _LENGTHS[period]:
                raise Mistake(
                    "{where}, document {document}: {form!r} names no {wanted} (each digit is shown as 9, each letter as a)",
                    hint="write dates as 2026-11-23, 2026-11 or 2026; a time may follow a day, as in 2026-11-23T18:30",
                    where=where,
                    document=number,
                    form=_form(text),
                    wanted=period if whole else "date",
                )
            found[text] = whole[: _LENGTHS[period]]
    return [found[text] for text in map(str, dates)]


def all_periods(periods: Sequence[str], period: str) -> list[str]:
    """Returns the periods in order, from the first to the last, also those without a document; see MOST_GAPS."""
    held = sorted(set(periods))
    if not held:
        return []
    first, last = (_count(one, period) for one in (held[0], held[-1]))
    return [_period(count, period) for count in range(first, last + 1)] if last - first < MOST_GAPS else held


def _read(text: str) -> str | None:
    """The date without its time, as it is written; nothing if it is no date."""
    day = _DATE.match(text)
    if day is None:
        return None
    rest, (year, month, of_month) = text[day.end() :], day.groups()
    try:
        date(int(year), int(month or 1), int(of_month or 1))
        if rest:
            datetime.fromisoformat(text if of_month else "")
    except ValueError:
        return None
    return day.group()


def _count(period: str, kind: str) -> int:
    year, month, day = (int(part) for part in (*period.split("-"), "1", "1")[:3])
    return {"year": year, "month": 12 * year + month - 1, "day": date(year, month, day).toordinal()}[kind]


def _period(count: int, kind: str) -> str:
    if kind == "day":
        return date.fromordinal(count).isoformat()
    return f"{count:04}" if kind == "year" else f"{count // 12:04}-{count % 12 + 1:02}"


def _form(text: str) -> str:
    """The form of a text without its content: every digit is 9, every letter a."""
    form = re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "9", text))
    return form if len(form) <= _LONGEST_FORM else form[:_LONGEST_FORM] + "…"
