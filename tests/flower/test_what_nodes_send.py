"""What a node may send instead of a sealed reply, and settings that no run can have, in Flower's own messages."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from .deployed import environment, flower, needs_flower

pytestmark = needs_flower

SCRIPT = """
import json, sys
from flwr.app import ConfigRecord, Context, Error, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity
from securetm.errors import SecuretmError
from securetm.federation.flower import client_app, flower_message, server_app, simulation_app
from securetm.federation.flower.nodes import sealed_in

TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1

def name(work):
    try:
        return repr(work())
    except SecuretmError as problem:
        return type(problem).__name__

def reply(content):
    return Message(content, dst_node_id=1, message_type="query")

def pieces(**records):
    return reply(RecordDict({key: ConfigRecord({"bytes": value}) for key, value in records.items()}))

asked = reply(RecordDict())
asked.metadata.__dict__["_message_id"] = "asked"
failed = Message(Error(code=1, reason="no party"), reply_to=asked)
long = bytes(3 * flower_message.PIECE + 5)
context = Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config={"out": ""})
told = {
    "whole": flower_message.payload_of(reply(flower_message.content_of(long)), "a node") == long,
    "pieces": len(flower_message.content_of(long)),
    "empty": flower_message.payload_of(reply(flower_message.content_of(b"")), "a node") == b"",
    "sealed": name(lambda: sealed_in(pieces(**{"0000": b"\\1\\2sealed"}), 100)),
    "failed": name(lambda: sealed_in(failed, 100)),
    "refused": name(lambda: sealed_in(pieces(**{"0000": b"\\1\\3NotIntroduced"}), 100)),
    "nameless": name(lambda: sealed_in(pieces(**{"0000": b"\\1\\3 !"}), 100)),
    "too long": name(lambda: sealed_in(pieces(**{"0000": bytes(101)}), 100)),
    "gap": name(lambda: sealed_in(pieces(**{"0000": b"a", "0002": b"b"}), 10**9)),
    "no bytes": name(lambda: sealed_in(pieces(**{"0000": 5}), 100)),
    "nothing": name(lambda: sealed_in(reply(RecordDict()), 100)),
    "relative plan": name(lambda: server_app.conduct(None, {"plan": "plan.toml"})),
    "no plan": name(lambda: server_app.conduct(None, {})),
    "relative out": name(lambda: simulation_app.conduct(None, {"out": "run"})),
    "no socket": name(lambda: client_app.carry(pieces(**{"0000": b"a"}), context)),
}
context.node_config["socket"] = "/nonexistent/party.sock"
told["nobody at the socket"] = name(lambda: client_app.carry(pieces(**{"0000": b"a"}), context))
sys.stdout.write(json.dumps(told))
"""
TOLD = {
    "whole": True,
    "pieces": 4,
    "empty": True,
    "sealed": r"b'\x01\x02sealed'",
    **dict.fromkeys(("failed", "refused", "nameless", "too long", "gap", "no bytes", "nothing"), "NodeFailed"),
    **dict.fromkeys(("relative plan", "no plan", "relative out", "no socket"), "BadFlowerSetting"),
    "nobody at the socket": "PartyNotReached",
}


def test_everything_but_a_sealed_reply_has_a_name(tmp_path: Path) -> None:
    ended = subprocess.run(
        [flower("python"), "-c", SCRIPT], env=environment(tmp_path), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr[-3_000:]
    assert json.loads(ended.stdout) == TOLD
