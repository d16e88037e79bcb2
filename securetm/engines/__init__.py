"""Engines carry out the pieces of one party's answer, in this process or in others. No message tells others which it has.

An engine is a dataclass whose fields are its settings in `[engine]` of the party's own file. Making one starts nothing.
An engine of another package is found through its entry point in the group `securetm.engines`.
"""

from securetm.registries import Registry

IN_PROCESS = "in-process"

ENGINES = Registry(
    "engine",
    "securetm.engines",
    "securetm.contracts:Engine",
    {
        IN_PROCESS: "securetm.block_answers:InThisProcess",
        "pool": "securetm.engines.local_pool:LocalPool",
        "ray": "securetm.engines.ray_engine:RayEngine",
    },
)
