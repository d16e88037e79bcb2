"""Commands for whoever looks after a member's machine: doctor, backup and restore, version."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from securetm.cli.command import Output, command
from securetm.cli.options import ARGUMENT, FILE, PassphraseFile, check_courier
from securetm.errors import Failed, Mistake

_STYLES = {"good": "good", "bad": "danger", "unknown": "hint"}


@command("homes/hospital-a")
def doctor(
    out: Output,
    home: Annotated[
        Path | None, ARGUMENT, "The member's home; else the one in $XDG_DATA_HOME/securetm.", {"metavar": "[HOME]"}
    ] = None,
    courier: Annotated[
        str | None, "Where letters lie, if files are exchanged: looked at in place of a connection.", {"metavar": "FOLDER"}
    ] = None,
    passphrase_file: PassphraseFile = None,
) -> dict[str, Any]:
    """Looks at keys, permissions, clock, disk, entropy, versions, build, ledgers, proxies, and the way to the coordinator.

    Each line is good, bad or unknown, with what to do. It exits with 1 if one is bad. It reads no document and changes nothing;
    the coordinator is asked over the connection that a run would use.
    """
    from securetm.cli.passphrases import given_passphrase
    from securetm.credentials.homes import found_home
    from securetm.credentials.keys import keep_out_of_core_dumps
    from securetm.federation.doctor import BAD, examined
    from securetm.reports.document import Table, Words
    from securetm.reports.terminal import show

    check_courier(courier)
    keep_out_of_core_dumps()
    place = found_home(home)
    with out.busy("Looking at this member"):
        found = list(examined(place, given_passphrase(passphrase_file), courier))
    rows = tuple(
        (one.what, (Words(one.verdict, _STYLES[one.verdict]),), tuple(filter(None, (one.found, one.to_do)))) for one in found
    )
    show([Table(("what", "is", "found, and what to do"), rows, title=str(place), whole=(0, 1))], out.results)
    bad = [one.what for one in found if one.verdict == BAD]
    out.exit_code = 1 if bad else 0
    return {"home": str(place), "bad": bad, "findings": [asdict(one) for one in found]}


_ITS_HOME = Annotated[Path, ARGUMENT, "The member's home.", {"metavar": "HOME"}]


@command("homes/hospital-a hospital-a.backup")
def backup(
    out: Output,
    home: _ITS_HOME,
    file: Annotated[Path, ARGUMENT, "Where the copy goes; one that is there is replaced.", FILE],
    passphrase_file: PassphraseFile = None,
) -> dict[str, Any]:
    """Copies a home, keys and ledgers too, while its process goes on. Nobody can read the file without the passphrase.

    The passphrase is that of the keys; where these have none, choose one now.
    """
    from securetm.cli.passphrases import new_passphrase, passphrase_for
    from securetm.credentials.homes import KEYS, found_home
    from securetm.credentials.keys import are_encrypted, keep_out_of_core_dumps
    from securetm.federation.party.backups import back_up

    keep_out_of_core_dumps()
    keys = found_home(home) / KEYS
    phrase = passphrase_for(keys, passphrase_file) if are_encrypted(keys) else new_passphrase(passphrase_file, True)
    assert phrase is not None
    with out.busy("Copying"):
        files = back_up(home, file, phrase)
    size = file.stat().st_size
    out.results.print(f"{file} holds {files} files of {home}, encrypted; keep it elsewhere.", markup=False, soft_wrap=True)
    return {"home": str(home), "file": str(file), "files": files, "bytes": size}


@command("hospital-a.backup homes/hospital-a")
def restore(
    out: Output,
    file: Annotated[Path, ARGUMENT, "What `securetm backup` wrote.", FILE],
    home: Annotated[Path, ARGUMENT, "A folder that is empty or not there yet.", {"metavar": "HOME"}],
    request: Annotated[Path | None, "--request", "Where the request for a new identity goes: NAME.request.", FILE] = None,
    passphrase_file: PassphraseFile = None,
) -> dict[str, Any]:
    """Makes a home of a copy, and keys of a new identity, under which it takes part again.

    What the party answered after the copy was made, the copy does not know. Under the new identity the others refuse what they
    answered together with the old one, and under a budget they have to confirm its ledger before it spends more.
    """
    from securetm.cli.keys import tell_request
    from securetm.cli.passphrases import known_passphrase
    from securetm.credentials.keys import keep_out_of_core_dumps
    from securetm.federation.party.backups import restore as from_copy

    keep_out_of_core_dumps()
    phrase = known_passphrase(file, passphrase_file)
    with out.busy("Restoring"):
        made = from_copy(file, home, phrase)
    out.results.print(f"{home} is as it was when the copy was made.", markup=False, soft_wrap=True)
    if made is None:
        return {"home": str(home), "request": None}
    try:
        return tell_request(made, home, request, out)
    except OSError as problem:
        raise Mistake(
            "{home} is restored, and the request of its new identity could not be written: {problem}",
            hint="the home is whole, and is not restored again: `securetm keys request --home {home} --request FILE` goes on",
            home=str(home),
            problem=str(problem),
        ) from problem


_MOST = 20  # files that are named


@command("--json")
def version(
    out: Output,
    verify: Annotated[bool, "--verify", "Compare every file with what was published; 1 if one differs."] = False,
) -> dict[str, Any]:
    """Prints the version and the digest of all files that this package runs or reads.

    The same sources have the same digest, installed or in a checkout: compare it with the one that was published, and pin it in
    the roster (`securetm keys roster builds`).
    """
    from securetm.version import __version__, build_digest, published, sources

    found = sources()
    digest = build_digest(found)
    out.results.print(f"securetm {__version__}\nbuild {digest}", markup=False, soft_wrap=True)
    facts: dict[str, Any] = {"version": __version__, "build": digest, "files": len(found)}
    if not verify:
        return facts
    try:
        known = published()
    except ValueError as problem:
        said = "{problem}, so nothing can be compared with what was published"
        raise Failed(said, "install this version again", problem=str(problem)) from problem
    changed = None if known is None else sorted(name for name in {*found, *known} if found.get(name) != known.get(name))
    if changed is None:
        said = "This is a checkout, which was not published: compare the digest with that of a release."
    elif changed:
        more = f" and {len(changed) - _MOST} more" if len(changed) > _MOST else ""
        said = f"{len(changed)} of {len(found)} files are not as they were published: {', '.join(changed[:_MOST])}{more}."
    else:
        said = f"All {len(found)} files are as they were published."
    out.results.print(said, markup=False, soft_wrap=True)
    out.exit_code = 0 if changed == [] else 1
    return facts | {"published": known is not None, "changed": changed}
