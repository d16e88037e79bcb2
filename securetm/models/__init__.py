"""The topic models, each a file or a small folder, and what they share.

To add a model, write a frozen dataclass that derives from `Estimator` (from `MixedTopics` where documents mix topics by shares,
from `GradientModel` where it learns by gradients) and a query that adds one row per document; name it in the table below; test
it by `ModelLaws` and `QueryLaws`.
A model of another package derives from `TopicModel` and is found through its entry point in the group `securetm.models`.
"""

from securetm.registries import Registry

MODELS = Registry(
    "model",
    "securetm.models",
    "securetm.contracts:TopicModel",
    {
        "combined-tm": "securetm.models.neural.contextual:CombinedTM",
        "fednmf": "securetm.models.fednmf:FedNMF",
        "lda": "securetm.models.lda.lda:LDA",
        "lda-matched": "securetm.models.lda.matched:MatchedLDA",
        "lda-vi": "securetm.models.lda.lda_vi:VariationalLDA",
        "moments": "securetm.models.moments:Moments",
        "neural-lda": "securetm.models.neural.neural_lda:NeuralLDA",
        "nmf": "securetm.models.nmf:NMF",
        "prodlda": "securetm.models.neural.prodlda:ProdLDA",
        "semantic": "securetm.models.semantic:SemanticTopics",
        "sentence-lda": "securetm.models.lda.sentence_lda:SentenceLDA",
        "sentence-lda-matched": "securetm.models.lda.matched:MatchedSentenceLDA",
        "torch-module": "securetm.models.neural.torch_module:TorchModule",
        "zeroshot-tm": "securetm.models.neural.contextual:ZeroShotTM",
    },
    named=True,
)
