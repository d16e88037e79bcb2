"""Errors of a corpus on disk: which file is wrong, and what to do. It checks nothing itself."""

from __future__ import annotations

from securetm.errors import BadCorpus


class DamagedShard(BadCorpus):
    """{path} is damaged, was cut short or was changed: {problem}"""

    path: str
    problem: str
    hint = "build the corpus again (securetm corpus build SOURCE --out DIR, with the same settings), or copy that file again"


class NotBuilt(BadCorpus):
    """{path} holds a corpus whose building has not ended"""

    path: str
    hint = "give the same `securetm corpus build` again: it goes on where it stopped"


class NoStoredCorpus(BadCorpus):
    """{path} holds no corpus that `securetm corpus build` wrote"""

    path: str
    hint = "build one (securetm corpus build SOURCE --out {path}), or give the documents themselves with --corpus"


class FolderTaken(BadCorpus):
    """{path} holds {what}"""

    path: str
    what: str
    hint = "take a folder that is not there yet with --out, or delete this one first"


class OtherBuild(BadCorpus):
    """the build in {path} began with {setting} = {found}, and now {wanted} is asked for"""

    path: str
    setting: str
    found: str
    wanted: str
    hint = "give the same settings as then, and it goes on; or delete {path}, or take another folder with --out, to begin anew"


class SourceChanged(BadCorpus):
    """{source} is not what it was when the build in {path} began: a file has another name, size or time of change"""

    source: str
    path: str
    hint = "delete {path} and build anew; what was built of the earlier documents is still there, and is no whole corpus"


class TooManyWords(BadCorpus):
    """{count} different words and names take {needed} MB of memory, and --memory leaves {megabytes} MB for them"""

    count: int
    needed: int
    megabytes: int
    hint = "give the same command with more --memory, and it goes on; or make fewer words, such as with tokeniser.ngrams=1"


class BlockTooLarge(BadCorpus):
    """a block of {documents} documents takes {needed} MB while it is built, and --memory leaves {megabytes} MB for it"""

    documents: int
    needed: int
    megabytes: int
    hint = "give the same command with more --memory, and it goes on; or build anew with fewer --block-documents"


class OtherTokeniser(BadCorpus):
    """the words of {path} were made with {setting} = {found}, and the plan says {wanted}"""

    path: str
    setting: str
    found: str
    wanted: str
    hint = "build the corpus again from its documents with the plan's settings: securetm corpus build SOURCE --plan PLAN"


class ColumnsWereChosen(BadCorpus):
    """the columns of {path} were chosen when it was built, and {role} = {column} means nothing now"""

    path: str
    role: str
    column: str
    hint = "leave {role} out, or build the corpus again with --{role} {column}"


class WholeCorpusNeeded(BadCorpus):
    """{what} needs all documents in memory at once, and {path} is read block by block"""

    what: str
    path: str
    hint = "read the documents themselves, or a part of them that fits into memory"
