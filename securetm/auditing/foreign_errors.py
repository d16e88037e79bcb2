"""Errors of files that hold topics from elsewhere, and of the documents that they are audited with."""

from __future__ import annotations

from securetm.errors import Misuse


class UnknownTopicFile(Misuse):
    """{path} is no file of topics that can be read here: {problem}"""

    path: str
    problem: str
    hint = "give .csv, .json, .npz or a folder of BERTopic, as docs/how-to/audit-foreign-models.md describes them"


class UnsafeModelFile(Misuse):
    """{path} is a format that can run code when it is opened, so it is not opened"""

    path: str
    hint = "export the topics where the model was made: docs/how-to/audit-foreign-models.md has one line for each library"


class BadTopicWeight(Misuse):
    """a weight in {path} is {what}"""

    path: str
    what: str
    hint = "weights are finite numbers that are not negative, and every topic has one above 0: export the model again"


class RepeatedTopicWord(Misuse):
    """{path} has the word {word!r} twice in one topic, or twice in its vocabulary"""

    path: str
    word: str
    hint = "each word stands once: add its weights up, or export the model again"


class TooFewKnownDocuments(Misuse):
    """{known} of {documents} documents in {path} have a word that the model knows, and {needed} are needed"""

    known: int
    documents: int
    path: str
    needed: int
    hint = "prepare the texts as the model's own were: the same language, lower case, stems and joined words"

    def advice(self) -> str:
        """What to do: where nearly all texts are known to the model, there are too few of them."""
        return self.hint if self.documents >= self.needed else f"give at least {self.needed} documents of each kind"


class OnBothSides(Misuse):
    """{documents} of the members are among the non-members, too"""

    documents: int
    hint = "a document was trained on, or it was not: remove it from one of the two files"
