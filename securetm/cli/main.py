"""The door to the command line: which commands there are, and how a failure is told. What they do is on the floors below.

Nothing heavy is imported here: `securetm --help` has half a second.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from typing import Annotated

import typer

from securetm import __version__
from securetm.cli import audit, budget, choose, examine, measure, report, run, threats
from securetm.errors import FAILURE, MISUSE, SecuretmError
from securetm.reports.letters import printable

# typer brings its own copy of click, or depends on it, by version: the class of all its misuses is found through one of them.
_Misused: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

app = typer.Typer(
    name="securetm",
    help="Topic models trained across organisations that may not show each other their documents.",
    epilog="Example: securetm explain open",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for commands in (run, examine, choose, threats, measure, budget, audit, report):
    commands.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"securetm {__version__}")
        raise typer.Exit()


@app.callback()
def _everything(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")] = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Topic models trained across organisations that may not show each other their documents."""
    del debug, version


def main() -> None:
    """Runs the command and ends the process: 0 fine, 1 a gap, 2 misuse, 3 failure."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    debug = len(arguments) < len(sys.argv) - 1
    _writable_in_any_alphabet()
    try:
        code = app(arguments or ["--help"], prog_name="securetm", standalone_mode=False)
    except SecuretmError as failure:
        code = _tell(str(failure), failure.advice(), failure.exit_code, debug)
    except _Misused as misuse:
        code = _tell(_sentence(misuse), _help_hint(misuse), MISUSE, debug)
    except (KeyboardInterrupt, typer.Abort):
        code = _tell("interrupted", "nothing that was kept is lost", FAILURE, debug)
    except BrokenPipeError:
        code = _nobody_reads()
    except Exception as fault:  # noqa: BLE001 - told in a sentence here; --debug shows all of it
        code = _tell(f"unexpected: {type(fault).__name__}", "repeat with --debug and report what it shows", FAILURE, debug)
    sys.exit(code or 0)


def _writable_in_any_alphabet() -> None:
    """A letter that the terminal or file does not know is spelt out; words come in every alphabet."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _nobody_reads() -> int:
    """Whoever read our output has closed it: there is nobody to tell, also not of what is still to be written."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
    return FAILURE


def _sentence(misuse: BaseException) -> str:
    return str(misuse.format_message()) if hasattr(misuse, "format_message") else str(misuse)


def _help_hint(misuse: BaseException) -> str:
    context = getattr(misuse, "ctx", None)
    return f"see {context.command_path if context else 'securetm'} --help"


def _tell(sentence: str, hint: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    sys.stderr.write(f"securetm: error: {printable(sentence)}\n")  # it may quote a file, and a file may hold anything
    if hint:
        sys.stderr.write(f"securetm: hint: {printable(hint)}\n")
    return code


if __name__ == "__main__":
    main()
