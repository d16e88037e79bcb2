"""Topic models trained across organisations that may not show each other their documents.

This file names what users import. A name is imported when it is first used, so that `import securetm` takes no time.
No module of the package imports this file.
"""

from __future__ import annotations

from securetm.version import __version__ as __version__

TYPE_CHECKING = False  # of `typing`, which takes as long to load as a probe of health may
if TYPE_CHECKING:
    from typing import Any

    from securetm.accounting.calculator.mechanisms import budget as budget
    from securetm.auditing.runner import audit as audit
    from securetm.corpus.corpus import Corpus as Corpus
    from securetm.corpus.docstrings import docstring_parties as docstring_parties
    from securetm.corpus.readers import read_corpus as read_corpus
    from securetm.corpus.tokeniser import Tokeniser as Tokeniser
    from securetm.models.fednmf import FedNMF as FedNMF
    from securetm.models.lda.lda import LDA as LDA
    from securetm.models.lda.lda_vi import VariationalLDA as VariationalLDA
    from securetm.models.lda.sentence_lda import SentenceLDA as SentenceLDA
    from securetm.models.moments import Moments as Moments
    from securetm.models.neural.contextual import CombinedTM as CombinedTM
    from securetm.models.neural.contextual import ZeroShotTM as ZeroShotTM
    from securetm.models.neural.neural_lda import NeuralLDA as NeuralLDA
    from securetm.models.neural.prodlda import ProdLDA as ProdLDA
    from securetm.models.neural.torch_module import TopicNetwork as TopicNetwork
    from securetm.models.neural.torch_module import TorchModule as TorchModule
    from securetm.models.nmf import NMF as NMF
    from securetm.models.semantic import SemanticTopics as SemanticTopics
    from securetm.reports.statement.write import federate as federate
    from securetm.runs.finished import load as load

_WHERE = {
    "CombinedTM": "securetm.models.neural.contextual",
    "Corpus": "securetm.corpus.corpus",
    "FedNMF": "securetm.models.fednmf",
    "LDA": "securetm.models.lda.lda",
    "Moments": "securetm.models.moments",
    "NMF": "securetm.models.nmf",
    "NeuralLDA": "securetm.models.neural.neural_lda",
    "ProdLDA": "securetm.models.neural.prodlda",
    "SemanticTopics": "securetm.models.semantic",
    "SentenceLDA": "securetm.models.lda.sentence_lda",
    "Tokeniser": "securetm.corpus.tokeniser",
    "TopicNetwork": "securetm.models.neural.torch_module",
    "TorchModule": "securetm.models.neural.torch_module",
    "VariationalLDA": "securetm.models.lda.lda_vi",
    "ZeroShotTM": "securetm.models.neural.contextual",
    "audit": "securetm.auditing.runner",
    "budget": "securetm.accounting.calculator.mechanisms",
    "docstring_parties": "securetm.corpus.docstrings",
    "federate": "securetm.reports.statement.write",
    "load": "securetm.runs.finished",
    "read_corpus": "securetm.corpus.readers",
}
__all__ = sorted((*_WHERE, "__version__"))


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"securetm has no {name!r}; it has {', '.join(sorted(_WHERE))}")
    from importlib import import_module

    try:
        return getattr(import_module(_WHERE[name]), name)
    except ModuleNotFoundError as problem:
        from securetm.extras import missing_extra

        raise missing_extra(problem) or problem from problem
