"""The entry point of the command line: exit codes, and how failures are reported. application.py lists the commands.

Little is imported before failures can be reported, so that Ctrl-C while libraries load is reported too.
"""

from __future__ import annotations

import gc
import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from securetm.errors import SecuretmError

FILE = "SECURETM_FILE"  # names the file for a probe of a container's health, so that an image needs no shell
_MISUSE, _FAILURE = 2, 3  # as in errors/, which a probe of health does not load
_INTERRUPTED = 130  # typer's exit code for Ctrl-C, which it does not report
_LONGEST = 2_000  # characters of a sentence, which may quote what somebody typed


def main() -> None:
    """Runs the command and ends the process: 0 fine, 1 a gap, 2 misuse, 3 failure."""
    gc.set_threshold(20_000)  # what loads stays: to look for garbage among it again and again takes a twentieth of the time
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    debug = len(arguments) < len(sys.argv) - 1
    arguments = ["--log" if argument == "--log=json" else argument for argument in arguments]
    pairs = zip(["", *arguments], arguments, strict=False)
    arguments = [one for before, one in pairs if (before, one) != ("--log", "json")]  # the one form that a log has
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # escapes characters that the terminal or file cannot encode
    try:
        code = 0
        if not _works(arguments):
            from securetm.interrupts import never_lost

            with never_lost():
                code = _run(arguments or ["--help"], debug)
    except KeyboardInterrupt:
        code = _interrupted(debug)
    except BrokenPipeError:  # the reader of our output has closed it: what is still to be written is dropped
        from securetm.reports.files import to_nowhere

        for stream in (sys.stdout, sys.stderr):
            to_nowhere(stream.fileno())
        code = _FAILURE
    except Exception as problem:  # noqa: BLE001 - reported in a sentence; --debug shows the traceback
        code = _reported(problem, arguments[:1], debug)
    sys.exit(code)


def _reported(problem: Exception, command: list[str], debug: bool) -> int:
    from securetm.errors import SecuretmError, SettingMistakes, system_refused
    from securetm.extras import missing_extra

    if isinstance(problem, SettingMistakes):
        return max(_report(str(one), _advice(one, command), one.exit_code, debug) for one in problem.mistakes)
    failure = problem
    if isinstance(problem, ModuleNotFoundError):
        failure = missing_extra(problem) or problem
    elif isinstance(problem, OSError):  # that no lower layer has turned into one of ours
        path = os.fsdecode(problem.filename) if isinstance(problem.filename, str | bytes) else "a file"
        failure = system_refused(path, "cannot be used", problem)
    if isinstance(failure, SecuretmError):
        return _report(str(failure), _advice(failure, command), failure.exit_code, debug)
    return _report(f"unexpected: {type(failure).__name__}", "repeat with --debug and report what it shows", _FAILURE, debug)


def _run(arguments: list[str], debug: bool) -> int:
    """Runs the command and returns its exit code. Reports what typer calls a misuse."""
    import typer

    from securetm.cli.application import commands
    from securetm.errors import did_you_mean

    # of a line that a shell completes, the command is the one whose name stands there whole
    typed = f"{os.environ.get('COMP_WORDS') or os.environ.get('_TYPER_COMPLETE_ARGS') or ''}.".split()
    command = typed[1] if len(typed) > 2 else arguments[0]
    # by version, typer has a copy of click or depends on it, so the base class of misuses is found through one of them
    misused: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
    try:
        code = commands(command)(arguments, prog_name="securetm", standalone_mode=False)
    except misused as misuse:
        sentence = str(misuse.format_message()) if hasattr(misuse, "format_message") else str(misuse)
        context = getattr(misuse, "ctx", None)
        meant = did_you_mean(getattr(misuse, "option_name", ""), getattr(misuse, "possibilities", None) or ())
        return _report(sentence, f"{meant}see {context.command_path if context else 'securetm'} --help", _MISUSE, debug)
    except typer.Abort:
        return _interrupted(debug)
    return _interrupted(debug) if code == _INTERRUPTED else int(code or 0)


def _works(arguments: list[str]) -> bool:
    """Answers `securetm health FILE` before any library loads. False where something else is asked, or the file is wrong."""
    if arguments == ["health"] and FILE in os.environ:
        arguments = [*arguments, os.environ[FILE]]
    if len(arguments) != 2 or arguments[0] != "health" or arguments[1].startswith("-"):
        return False
    from securetm.federation.health import check_works, plain_tables

    try:
        with open(arguments[1], encoding="utf-8") as file:
            text = file.read()
        tables = plain_tables(text)
        if tables is None:
            import tomllib  # which takes longer to load than all the rest

            tables = tomllib.loads(text)
        said = check_works(arguments[1], tables)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False  # the command itself says what is wrong with the file
    if not said.isprintable():
        from securetm.foreign_text import printable

        said = printable(said)
    sys.stdout.write(f"{said}\n")
    return True


def _advice(failure: SecuretmError, command: list[str]) -> str:
    """What to do about it; `securetm run` takes some settings of its plan as options, too."""
    from securetm.errors import BadSetting

    advice = failure.advice()
    if not isinstance(failure, BadSetting) or failure.instead or command != ["run"]:
        return advice
    from securetm.cli.run import option_for

    option = option_for(failure.where, failure.name)
    return f"{advice}, or what you gave with {option}" if option else advice


def _interrupted(debug: bool) -> int:
    # Python ends by the signal itself, and without our exit code, if the interrupt passed through an `exec`, such as that of
    # a dataclass being made while libraries load. It forgets about that at the next one.
    exec("")  # noqa: S102
    return _report("interrupted", "nothing that was kept is lost", _FAILURE, debug)


def _report(sentence: str, hint: str, code: int, debug: bool) -> int:
    from securetm.foreign_text import printable

    if debug:
        import traceback

        traceback.print_exc()
    for kind, text in (("error", sentence), ("hint", hint)):
        if text:  # it may quote a file, which may hold control characters
            short = text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}…{text[-_LONGEST // 2 :]}"
            sys.stderr.write(f"securetm: {kind}: {printable(short)}\n")
    return code


if __name__ == "__main__":
    main()
