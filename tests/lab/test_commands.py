"""The lab's command line: its help, its examples and how its misuses end."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import sys
from importlib import import_module
from inspect import signature

import pytest

from lab.__main__ import KINDS, main


def lab(*arguments: str) -> tuple[int, str, str]:
    """Runs the command in this process: its exit code, its output and what it complains of."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["lab", *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as end:
            main()
    finally:
        sys.argv = before
    return int(end.value.code or 0), out.getvalue(), err.getvalue()


def refused(*arguments: str) -> str:
    """The complaint and the advice about a misuse, which are all that is said."""
    code, out, err = lab(*arguments)
    assert (code, out) == (2, ""), err
    assert re.fullmatch(r"lab: error: .+\nlab: hint: .+\n", err), err
    return err


def test_help_shows_both_commands_and_ends_in_an_example() -> None:
    assert lab() == lab("--help")
    code, out, _ = lab("--help")
    assert code == 0
    assert "Reproduce a table or figure." in out
    for command in ("bench", "reproduce"):
        code, out, _ = lab(command, "--help")
        assert code == 0
        assert f"Example: python -m lab {command} " in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("bench", "federations"), "did you mean federation"),
        (("reproduce", "itfm"), "did you mean iftm"),
        (("bench", "magic"), "no bench called 'magic'"),
        (("fly",), "fly"),
        (("bench", "noise", "--parties", "5"), "--parties"),
        (("reproduce", "iftm", "--data", "nosuch"), "--data"),
        (("reproduce", "additive-prodlda", "--html", "absent/page.html"), "cannot be written"),
    ],
)
def test_a_misuse_is_answered_in_a_sentence_and_a_hint(arguments: tuple[str, ...], said: str) -> None:
    assert said in refused(*arguments)


@pytest.mark.parametrize("command", ["bench", "reproduce"])
def test_every_name_leads_to_a_function_that_tells_its_progress(command: str) -> None:
    for name, place in dict(KINDS.values())[command].items():
        module, _, function = place.partition(":")
        found = getattr(import_module(f"lab.{module}"), function or command)
        assert "on_progress" in signature(found).parameters, name


@pytest.mark.slow
@pytest.mark.parametrize("command", ["bench", "reproduce"])
def test_every_example_does_what_it_says(command: str) -> None:
    example = next(line for line in lab(command, "--help")[1].splitlines() if "Example:" in line).split("Example: ")[1]
    code, out, err = lab(*shlex.split(example)[3:], "--json")
    assert code == 0, err
    assert json.loads(out)["rows"]
