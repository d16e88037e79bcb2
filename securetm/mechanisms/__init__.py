"""What changes what is learned from a sum: sampling, clipping, noise. Mechanisms see no network.

A mechanism of another package is found through its entry point in the group `securetm.mechanisms`.
"""

from securetm.registries import Registry

MECHANISMS = Registry(
    "mechanism",
    "securetm.mechanisms",
    "securetm.contracts:Mechanism",
    {
        "bounded_counts": "securetm.mechanisms.clipping:BoundedCounts",
        "central_gaussian": "securetm.mechanisms.gaussian_noise:CentralNoise",
        "clamped": "securetm.mechanisms.quantising:Clamped",
        "clip": "securetm.mechanisms.clipping:Clip",
        "discrete_laplace": "securetm.mechanisms.laplace_noise:DiscreteLaplaceNoise",
        "fixed_point": "securetm.mechanisms.quantising:FixedPoint",
        "gaussian": "securetm.mechanisms.gaussian_noise:GaussianNoise",
        "laplace_counts": "securetm.mechanisms.laplace_counts:LaplaceCounts",
        "noise_shares": "securetm.mechanisms.noise_shares:NoiseShares",
        "poisson": "securetm.mechanisms.sampling:PoissonSample",
        "rotation": "securetm.mechanisms.rotating:Rotation",
        "shuffled_batches": "securetm.mechanisms.sampling:ShuffledBatches",
        "topic_wise": "securetm.mechanisms.normalising:TopicWise",
        "word_selection": "securetm.mechanisms.word_selection:WordSelection",
    },
)
