"""Every way to fail, as one tree. Not a place for logic: a docstring is the sentence, `hint` the advice, fields the facts.

A field never holds the words of a document, because an error may be shown to somebody who may not read them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar

MISUSE = 2
FAILURE = 3


class SecuretmError(Exception):
    """something went wrong"""

    hint: ClassVar[str] = ""
    exit_code: ClassVar[int] = FAILURE

    def facts(self) -> dict[str, Any]:
        """The public facts of this failure, by field name."""
        return {f.name: getattr(self, f.name) for f in fields(self)} if is_dataclass(self) else {}

    def __str__(self) -> str:
        return (type(self).__doc__ or "").format(**self.facts())

    def advice(self) -> str:
        """What to do about it."""
        listed = {name: ", ".join(map(str, v)) if isinstance(v, tuple) else v for name, v in self.facts().items()}
        return self.hint.format(**listed)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(self.facts().values())


# ---- the user's choices -------------------------------------------------------------------------------------------


class Misuse(SecuretmError):
    """this cannot be done"""

    exit_code = MISUSE


@dataclass(eq=False)
class NotFound(Misuse):
    """there is no {kind} called {name!r}"""

    kind: str
    name: str
    known: tuple[str, ...] = ()
    hint = "known: {known}"


@dataclass(eq=False)
class BadSetting(Misuse):
    """{where}: {name} = {value} {problem}"""

    where: str
    name: str
    value: str
    problem: str
    hint = "correct {name} in {where}"


@dataclass(eq=False)
class UnknownSetting(Misuse):
    """{where}: there is no setting called {name!r}"""

    where: str
    name: str
    known: tuple[str, ...]
    hint = "known here: {known}"


@dataclass(eq=False)
class UnreadableToml(Misuse):
    """{path} is not valid TOML: {problem}"""

    path: str
    problem: str
    hint = "correct the file at that line"


# ---- the parts' promises ------------------------------------------------------------------------------------------


class Unsound(Misuse):
    """this combination is not sound"""


@dataclass(eq=False)
class VocabularyNotAllowed(Unsound):
    """a vocabulary from {source!r} is not sound under profile {profile!r}"""

    source: str
    profile: str
    allowed: tuple[str, ...]
    hint = "allowed there: {allowed}"


@dataclass(eq=False)
class BrokenPromise(SecuretmError):
    """a {what} has {found} coordinates where its terms promise {promised}"""

    what: str
    found: int
    promised: int
    hint = "this is a fault of the model or the mechanism, not of the data: please report it"


class SplitOwner(SecuretmError):
    """rows of one document, person or party were poured in at two times, so they cannot be bounded together"""

    hint = "this is a fault of the model: all rows of an owner belong into one call; please report it"


class UnsafeEntropy(Misuse):
    """seeded randomness would void every privacy claim"""

    hint = "use OperatingSystem(); for test vectors spell Seeded(key, unsafe=True)"


# ---- refusals: what a role says when a message is not what was agreed; their names travel, their facts do not -----


class Refused(SecuretmError):
    """refused"""

    hint = "the other side runs another version, another plan, or lies: compare `securetm explain` on both sides"


@dataclass(eq=False)
class Malformed(Refused):
    """a message from {sender} is malformed: {problem}"""

    sender: str
    problem: str


@dataclass(eq=False)
class WrongSession(Refused):
    """a message belongs to another session"""


@dataclass(eq=False)
class WrongAgreement(Refused):
    """the {what} of the invitation is not the one this party accepted"""

    what: str


@dataclass(eq=False)
class NotInvited(Refused):
    """a question came before an invitation"""


@dataclass(eq=False)
class NotInCohort(Refused):
    """{name} is not in the cohort"""

    name: str


@dataclass(eq=False)
class CohortTooSmall(Refused):
    """a cohort of {found} parties is below this party's minimum of {need}"""

    found: int
    need: int


@dataclass(eq=False)
class UnknownQuestion(Refused):
    """nobody agreed to a question called {name!r}"""

    name: str


@dataclass(eq=False)
class UnknownRound(Refused):
    """there is no open round {round_id}"""

    round_id: str


@dataclass(eq=False)
class WrongRound(Refused):
    """the round id does not follow from the session, the terms and the profile"""


@dataclass(eq=False)
class OutOfTurn(Refused):
    """round {serial} was asked for after round {last}"""

    serial: int
    last: int


@dataclass(eq=False)
class BadState(Refused):
    """what a question is about does not fit: {problem}"""

    problem: str


@dataclass(eq=False)
class BadVector(Refused):
    """the vector of {sender} {problem}"""

    sender: str
    problem: str


@dataclass(eq=False)
class Duplicate(Refused):
    """{sender} answered twice"""

    sender: str


@dataclass(eq=False)
class AlreadyAnswered(Refused):
    """a question about the corpus alone was answered before, to another cohort"""

    hint = "two exact sums over cohorts one party apart show that party's vector: use another session's answer, or add noise"


@dataclass(eq=False)
class BelowMinimum(Refused):
    """a sum over {found} documents is below the profile's minimum of {need}"""

    found: int
    need: int


# ---- a federation that cannot go on --------------------------------------------------------------------------------


@dataclass(eq=False)
class TooFewParties(SecuretmError):
    """too many parties left ({left} of {of} remain, need {need})"""

    left: int
    of: int
    need: int
    hint = "wait for more parties, or agree on a profile with a lower threshold"


@dataclass(eq=False)
class Diverged(SecuretmError):
    """the model holds numbers that are not finite after round {rounds}"""

    rounds: int
    hint = "its steps were too long: choose a smaller learning_rate"


@dataclass(eq=False)
class PartyRefused(SecuretmError):
    """{party} refused: {reason}"""

    party: str
    reason: str
    hint = "the reason is in that party's own log; no details leave it"


@dataclass(eq=False)
class CannotWrite(Misuse):
    """{path} cannot be written: {problem}"""

    path: str
    problem: str
    hint = "check the permissions and the disk, or choose another --out"


@dataclass(eq=False)
class RunExists(Misuse):
    """{path} already holds a run"""

    path: str
    hint = "choose another --out, or continue it with `securetm run --resume {path}`"


@dataclass(eq=False)
class NotARun(Misuse):
    """{path} holds no {what}"""

    path: str
    what: str
    hint = "give the directory that `securetm run` printed; an unfinished run is continued with `securetm run --resume`"


@dataclass(eq=False)
class RunBusy(Misuse):
    """another process is working on {path}"""

    path: str
    hint = "wait for it, or end it first"


@dataclass(eq=False)
class DamagedStore(SecuretmError):
    """{path} is damaged: {problem}"""

    path: str
    problem: str
    hint = "restore it from a copy; an interrupted run never leaves a damaged file behind, a full disk or another program does"


@dataclass(eq=False)
class Interrupted(SecuretmError):
    """the run was interrupted after round {rounds}; nothing is lost"""

    path: str
    rounds: int
    hint = "continue it with `securetm run --resume {path}`"


@dataclass(eq=False)
class WorkerDied(SecuretmError):
    """the worker process of {parties} ended"""

    parties: str
    hint = "look for its last message above; continue with `securetm run --resume`"


# ---- questions of a federation ------------------------------------------------------------------------------------


@dataclass(eq=False)
class BadWordList(Refused):
    """the list of words from {party} {problem}"""

    party: str
    problem: str
    hint = "the party runs another version, or is not honest; leave it out or correct its software"


@dataclass(eq=False)
class EmptyVocabulary(Misuse):
    """none of {words} words is in enough and not too many documents (min_df = {min_df}, max_df = {max_df})"""

    words: int
    min_df: str
    max_df: str
    hint = "lower min_df or raise max_df"


class NoPersons(Misuse):
    """the unit of privacy is the person, but this corpus does not say whose documents they are"""

    hint = "name the column of persons when the corpus is read, or choose the document as the unit"


class NotAnswered(SecuretmError):
    """this question was not answered with a sum"""

    hint = "only the role that opens the sum can read it"


# ---- corpus -------------------------------------------------------------------------------------------------------


class BadCorpus(Misuse):
    """these documents cannot be used"""


@dataclass(eq=False)
class NoSuchPath(BadCorpus):
    """{path} does not exist"""

    path: str
    hint = "check the spelling; the path is relative to the folder you are in"


@dataclass(eq=False)
class Unreadable(BadCorpus):
    """{path} cannot be opened: {problem}"""

    path: str
    problem: str
    hint = "check the permissions and the disk"


@dataclass(eq=False)
class UnknownFormat(BadCorpus):
    """{path} has no ending that names a format"""

    path: str
    hint = "use .jsonl, .csv or .tsv (each also .gz), .parquet, or a folder of .txt files"


@dataclass(eq=False)
class EmptyFile(BadCorpus):
    """{path} is empty"""

    path: str
    hint = "one document per line or row is needed"


@dataclass(eq=False)
class NoTextFiles(BadCorpus):
    """{path} holds no .txt file"""

    path: str
    hint = "put one document in each .txt file, or name a .jsonl, .csv, .tsv or .parquet file"


@dataclass(eq=False)
class NoDocuments(BadCorpus):
    """{path}: none of the {skipped} documents holds a word that the tokeniser keeps"""

    path: str
    skipped: int
    hint = "is the text column the right one? do min_length, stop_words and the language fit?"


@dataclass(eq=False)
class MissingColumn(BadCorpus):
    """{path}, line {line}: there is no column called {column!r}"""

    path: str
    line: int
    column: str
    hint = "name the columns of your file (text=, label=, ...); the first line of a table holds the names of its columns"


@dataclass(eq=False)
class DuplicateColumn(BadCorpus):
    """{path}, line {line}: columns {first} and {second} have the same name"""

    path: str
    line: int
    first: int
    second: int
    hint = "rename one of them; the first line of a table holds the names of its columns"


@dataclass(eq=False)
class IncompleteColumn(BadCorpus):
    """{path}, line {line}: some documents have a {column} and some have none"""

    path: str
    line: int
    column: str
    hint = "give every document a {column}, or none"


@dataclass(eq=False)
class BadCell(BadCorpus):
    """{path}, line {line}: the {column} {problem}"""

    path: str
    line: int
    column: str
    problem: str
    hint = "correct that line, or name another column as {column}"


@dataclass(eq=False)
class RaggedRow(BadCorpus):
    """{path}, line {line}: the row has {found} cells where the first line names {expected}"""

    path: str
    line: int
    found: int
    expected: int
    hint = "put cells that hold the delimiter or a line break between double quotes"


@dataclass(eq=False)
class BadTable(BadCorpus):
    """{path}, line {line}: the double quotes or line breaks of this row do not fit"""

    path: str
    line: int
    hint = "close every double quote, double each quote inside a quoted cell, and end rows with LF or CRLF"


@dataclass(eq=False)
class WrongEncoding(BadCorpus):
    """{path}, line {line}: this is not UTF-8"""

    path: str
    line: int
    hint = "convert the file first: iconv -f latin1 -t utf-8 OLD > NEW"


@dataclass(eq=False)
class NulByte(BadCorpus):
    """{path}, line {line}: there is a NUL byte in the text"""

    path: str
    line: int
    hint = "is it a text file, and UTF-8 rather than UTF-16? remove NUL bytes with: tr -d '\\000' < OLD > NEW"


@dataclass(eq=False)
class DocumentTooLong(BadCorpus):
    """{path}, line {line}: one document is longer than {megabytes} MB"""

    path: str
    line: int
    megabytes: int
    hint = "split it: one document per line, and a document is at most {megabytes} MB"


@dataclass(eq=False)
class InvalidJson(BadCorpus):
    """{path}, line {line}: this is not a JSON object"""

    path: str
    line: int
    hint = 'JSONL is one object per line, such as {{"text": "..."}}; a file that is one JSON array must be rewritten'


@dataclass(eq=False)
class DamagedFile(BadCorpus):
    """{path} is damaged or was cut short: {problem}"""

    path: str
    problem: str
    hint = "copy or download it again; compare its size with the original's"


@dataclass(eq=False)
class OtherVersion(BadCorpus):
    """{path} was written in version {found} of its format; this securetm reads version {known}"""

    path: str
    found: int
    known: int
    hint = "write it again with this securetm, or read it with the one that wrote it"


@dataclass(eq=False)
class UnlikeParts(BadCorpus):
    """a corpus has {found} {what} where {expected} are needed"""

    what: str
    found: int
    expected: int
    hint = "every column of a corpus has one entry per document, and every word id lies inside the vocabulary"


@dataclass(eq=False)
class RepeatedWord(BadCorpus):
    """a vocabulary of {size} words holds {repeated} words twice"""

    size: int
    repeated: int
    hint = "a vocabulary names every word once"


@dataclass(eq=False)
class RepeatedKeys(BadCorpus):
    """{repeated} documents have the same key as another one"""

    repeated: int
    hint = "the same documents came in twice; if they are different documents of sources with one name, use rekeyed(NAME)"


@dataclass(eq=False)
class UnlikeCorpora(BadCorpus):
    """some of these corpora have {what} and some have none, or of another width"""

    what: str
    hint = "read them the same way, or drop {what} with dataclasses.replace"


@dataclass(eq=False)
class NoColumn(BadCorpus):
    """the documents have no {column}"""

    column: str
    hint = "name the column when reading: read_corpus(PATH, {column}=...)"


@dataclass(eq=False)
class TooFewDocuments(BadCorpus):
    """{documents} documents cannot be shared out among {parties} parties"""

    documents: int
    parties: int
    hint = "fewer parties, or more documents"


@dataclass(eq=False)
class TooFewPackages(BadCorpus):
    """only {found} of the packages whose docstrings make the built-in documents are installed here"""

    found: int
    known: tuple[str, ...]
    hint = "name your own documents in a plan, or install another of {known}"


# ---- models --------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class NotFitted(Misuse):
    """this {model} has not learned anything yet"""

    model: str
    hint = "call fit(documents) first, or {model}.load(path)"


@dataclass(eq=False)
class OtherVocabulary(Misuse):
    """the documents have {found} words where the model's vocabulary has {known}, or others, or in another order"""

    found: int
    known: int
    hint = "count the documents over the model's own vocabulary, for example with corpus.project(model.learned.vocabulary)"


@dataclass(eq=False)
class DamagedModel(SecuretmError):
    """{path} cannot be read as a model: {problem}"""

    path: str
    problem: str
    hint = "save the model again; only files written by save() can be loaded"


@dataclass(eq=False)
class NewerModel(SecuretmError):
    """{path} is a model file of version {found}, this securetm reads version {known}"""

    path: str
    found: str
    known: str
    hint = "load it with the securetm that wrote it, or a newer one"


@dataclass(eq=False)
class OtherModel(Misuse):
    """{path} holds a {found}, not a {wanted}"""

    path: str
    found: str
    wanted: str
    hint = "load it with the class that saved it"


@dataclass(eq=False)
class SketchTooSmall(SecuretmError):
    """the parties have more words together than the plan allows for ({left} cells could not be read)"""

    left: int
    hint = "raise vocabulary.most_candidates in the plan, or let every party leave out its rarest words"


@dataclass(eq=False)
class NoiseBeforeRounding(Unsound):
    """a share of noise must be added after rounding, not before"""

    hint = "in the profile, put the [[mechanism]] that rounds before the one that adds noise"


@dataclass(eq=False)
class NotFinite(SecuretmError):
    """{count} values of this party's vector are not finite"""

    count: int
    hint = "training diverged: lower the learning rate; nothing was sent"


# ---- masked sums --------------------------------------------------------------------------------------------------


class MaskedNeedsIntegers(Unsound):
    """a masked sum adds whole numbers, and this question is about real ones"""

    hint = "put a quantising mechanism before it, which turns real numbers into steps of a grid"


class MaskedNeedsSum(Unsound):
    """a masked sum opens nothing but the sum, and this question needs each party's own vector"""

    hint = "choose a question that needs only the sum, for a matched model the aligned one, or the profile `open`"


class MaskedNeedsReach(Unsound):
    """a masked sum needs to know how large one party's values can be, and these terms set no limit"""

    hint = "let a clipping or quantising mechanism set the largest value (`reach`)"


@dataclass(eq=False)
class RingTooSmall(Unsound):
    """{parties} parties with values of up to {reach} do not fit into a ring of 64 bits"""

    parties: int
    reach: float
    hint = "clip to smaller values or use a coarser grid"


@dataclass(eq=False)
class TwoViewsPossible(Unsound):
    """with a threshold of {threshold} among {holders}, {colluding} of them colluding, two lists of survivors could both open"""

    threshold: int
    holders: int
    colluding: int
    need: int
    hint = "raise the threshold to {need} or more, or accept fewer colluding parties"


@dataclass(eq=False)
class TooFewHonest(Unsound):
    """a threshold of {threshold} with {colluding} colluding parties leaves fewer than two honest parties in a sum"""

    threshold: int
    colluding: int
    hint = "the threshold has to be at least two above the number of colluding parties"


@dataclass(eq=False)
class ThresholdTooHigh(Unsound):
    """a threshold of {threshold} cannot be reached by {parties} parties"""

    threshold: int
    parties: int
    hint = "lower the threshold, or let more parties take part"


@dataclass(eq=False)
class WeakGraph(Unsound):
    """{degree} neighbours for each of {parties} parties fail more often than once in {once}"""

    degree: int
    parties: int
    once: float
    hint = "leave the degree to be computed (0), raise it, or raise the threshold"


@dataclass(eq=False)
class UnexpectedMessage(Refused):
    """a message from {sender} comes where none of its kind is expected"""

    sender: str


@dataclass(eq=False)
class UnknownIdentity(Refused):
    """no key of {name} is pinned in the roster"""

    name: str
    hint = "every member's public key has to be in the roster that every party holds"


class NoIdentity(Misuse):
    """this party's own private key is missing, or is not the one whose public key is pinned in the roster"""

    hint = "put its 32 bytes into the party's cupboard under the name identity"


@dataclass(eq=False)
class BadSignature(Refused):
    """the signature of {sender} on its {what} is wrong"""

    sender: str
    what: str


@dataclass(eq=False)
class BadKey(Refused):
    """{sender} sent a public key that no honest party makes"""

    sender: str


class WrongSetup(Refused):
    """a message belongs to another set-up"""


@dataclass(eq=False)
class BrokenCommitment(Refused):
    """the number that {sender} reveals is not the one it committed itself to"""

    sender: str


@dataclass(eq=False)
class ChangedMessage(Refused):
    """the coordinator passes on something else in the name of this party than it sent ({what})"""

    what: str


@dataclass(eq=False)
class UnreadableShares(Refused):
    """the shares that {sender} sealed for this party cannot be opened"""

    sender: str


@dataclass(eq=False)
class SharesDisagree(Refused):
    """{dealer} and {holder} do not mean the same shares"""

    dealer: str
    holder: str
    hint = "one of the two is damaged or lies: leave one of them out and prepare again"


@dataclass(eq=False)
class FalseShare(Refused):
    """{sender} gave a false share of a secret of {owner}"""

    sender: str
    owner: str
    hint = "that party's memory is damaged, or it lies: leave it out and prepare again"


@dataclass(eq=False)
class FalseSecret(Refused):
    """the shares that {sender} dealt do not make the secret it committed itself to"""

    sender: str
    hint = "that party's software is at fault, or it lies: leave it out and prepare again"


@dataclass(eq=False)
class SetsOverlap(Refused):
    """{name} is listed both as a survivor and as dropped out: both of its shares are asked for"""

    name: str


@dataclass(eq=False)
class SetsIncomplete(Refused):
    """{name} is listed neither as a survivor nor as dropped out"""

    name: str


@dataclass(eq=False)
class CalledDropped(Refused):
    """a survivor, {name}, is asked to open a round in which it is called dropped out"""

    name: str


@dataclass(eq=False)
class TooFewSurvivors(Refused):
    """a round with {found} survivors is below this party's minimum of {need}"""

    found: int
    need: int


@dataclass(eq=False)
class AlreadyUnmasked(Refused):
    """this party has already answered for other survivors in round {round_id}"""

    round_id: str


class OtherSurvivors(Refused):
    """the survivors are not those that this party put its signature under"""


@dataclass(eq=False)
class TooFewSignatures(Refused):
    """{found} parties signed this list of survivors where {need} are needed"""

    found: int
    need: int


@dataclass(eq=False)
class OutOfStep(Refused):
    """{sender} is at prekey {found} and this role at {expected}"""

    sender: str
    found: int
    expected: int
    hint = "one of them was set back to an old copy of its memory; prepare again"


@dataclass(eq=False)
class PrekeyReused(Refused):
    """{sender} used prekey {index} a second time: its memory was set back to an old copy"""

    sender: str
    index: int
    hint = "that party has to prepare again before it takes part"


class RestoredState(Refused):
    """this party's memory was set back to an old copy: a prekey that it takes for fresh was used before"""

    hint = "prepare again; until then this party keeps silent"


class NotPrepared(Refused):
    """no prekey is left for a masked round"""

    hint = "run the set-up exchange (prepare) first"


@dataclass(eq=False)
class RoundAbandoned(Refused):
    """round {round_id} was begun before and its message is gone, so that it is abandoned"""

    round_id: str
    hint = "ask under a new round id; masking another vector for the same round could reveal their difference"


# ---- homomorphic sums: bfv and ckks -------------------------------------------------------------------------------


@dataclass(eq=False)
class NotASum(Unsound):
    """this question needs each party's own vector, and {aggregation} opens nothing but their sum"""

    aggregation: str
    hint = "ask for a sum instead (for a union of words: the word sketch), or use a profile whose parties trust the coordinator"


@dataclass(eq=False)
class NotWhole(Unsound):
    """{aggregation} adds whole numbers, and this question's values are real"""

    aggregation: str
    hint = "put a [[mechanism]] that rounds (fixed_point) into the profile, or use ckks"


@dataclass(eq=False)
class NoRange(Unsound):
    """{aggregation} cannot choose its precision: nobody promised how large a value of this question may be"""

    aggregation: str
    hint = "give the aggregation a span, or put a [[mechanism]] that clamps into the profile"


@dataclass(eq=False)
class TooWide(Unsound):
    """a sum over {parties} parties of values up to {reach} does not fit the ciphertexts of {aggregation}"""

    aggregation: str
    parties: int
    reach: str
    hint = "promise a smaller range, take coarser steps, or split the parties into several federations"


class NoSealLibrary(Misuse):
    """encrypted sums need the package tenseal, which is not installed here"""

    hint = "pip install tenseal, or choose the profile masked, which hides the same and needs no such package"


class HelperDied(SecuretmError):
    """a helper process that encrypts or decrypts ended before its work was done"""

    hint = "is there enough memory? the round can be tried again; helpers are started anew"


@dataclass(eq=False)
class NoSumKey(SecuretmError):
    """{party} holds no key of this session's encrypted sums"""

    party: str
    hint = "it was away when the key was handed round: prepare the session again"


@dataclass(eq=False)
class NoSignature(Refused):
    """the set-up message of {sender} is not signed by its identity for this session, roster and profile"""

    sender: str


@dataclass(eq=False)
class NotSealedForUs(Refused):
    """the key that {sender} sealed does not open here"""

    sender: str


@dataclass(eq=False)
class UnlikeKeys(Refused):
    """{sender} encrypts under another key than the other parties"""

    sender: str


@dataclass(eq=False)
class BadCiphertext(Refused):
    """the ciphertexts from {sender} are refused: {problem}"""

    sender: str
    problem: str


@dataclass(eq=False)
class OpenedBefore(Refused):
    """a second sum was sent for a round that is already opened"""


@dataclass(eq=False)
class TooFewInSum(Refused):
    """a sum over {found} parties is below the {need} that this round was promised"""

    found: int
    need: int


@dataclass(eq=False)
class TooFewToTakePart(Misuse):
    """{party} has too few documents to take part: with as many from every party, a sum would hold fewer than {need}"""

    party: str
    need: int
    hint = "join with more documents, or agree on a profile with a smaller minimum_documents; the others are told nothing"
