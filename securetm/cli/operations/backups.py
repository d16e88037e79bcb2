"""`securetm backup` and `securetm restore`: a home in one encrypted file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from securetm.cli.command import Output, command
from securetm.cli.options import PassphraseFile

_ITS_HOME = Annotated[Path, typer.Argument(metavar="HOME", help="The member's home.")]


@command("Copy a home into one encrypted file.", "homes/hospital-a hospital-a.backup")
def backup(
    home: _ITS_HOME,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where the copy goes; one that is there is replaced.")],
    passphrase_file: PassphraseFile = None,
    *,
    out: Output,
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


@command("Make a home of such a file.", "hospital-a.backup homes/hospital-a")
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `securetm backup` wrote.")],
    home: Annotated[Path, typer.Argument(metavar="HOME", help="A folder that is empty or not there yet.")],
    request: Annotated[
        Path | None, typer.Option("--request", metavar="FILE", help="Where the request for a new identity goes: NAME.request.")
    ] = None,
    passphrase_file: PassphraseFile = None,
    *,
    out: Output,
) -> dict[str, Any]:
    """Makes a home of a copy, and keys of a new identity, under which it takes part again.

    What the party answered after the copy was made, the copy does not know. Under the new identity the others refuse what they
    answered together with the old one, and under a budget they have to confirm its ledger before it spends more.
    """
    from securetm.cli.passphrases import known_passphrase
    from securetm.credentials.key_requests import write_request
    from securetm.credentials.keys import fingerprint_of, keep_out_of_core_dumps
    from securetm.federation.party.backups import restore as from_copy
    from securetm.reports.keys import show_request

    keep_out_of_core_dumps()
    phrase = known_passphrase(file, passphrase_file)
    with out.busy("Restoring"):
        made = from_copy(file, home, phrase)
    out.results.print(f"{home} is as it was when the copy was made.", markup=False, soft_wrap=True)
    if made is None:
        return {"home": str(home), "request": None}
    path = request or Path(f"{made.name}.request")
    write_request(path, made)
    facts = {"name": made.name, "home": str(home), "request": str(path), "identity": fingerprint_of(made.identity)}
    show_request(facts, out.json)
    return facts
