"""The Flower ClientApp: it hands each message to the party's process and carries the reply back. It can open neither.

A SuperNode starts a process for each message, and the code in it came from whoever ran `flwr run`. So documents, keys and the
party's state are in another process, behind a socket (`party_socket.py`).
"""

from __future__ import annotations

from pathlib import Path

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from securetm.federation.flower.flower_message import BadFlowerSetting, content_of, payload_of
from securetm.federation.flower.party_socket import ask

app = ClientApp()


@app.query()  # type: ignore[untyped-decorator]
def carry(message: Message, context: Context) -> Message:
    """Asks where this node's party answers: at `socket` of its `--node-config`, or in a simulation at that of its partition."""
    named, partition = context.node_config.get("socket"), context.node_config.get("partition-id")
    if not named and partition is None:
        raise BadFlowerSetting("socket", "must name the socket of the party's process")
    socket = Path(str(named)) if named else Path(str(context.run_config["out"])) / "sockets" / f"{partition}.sock"
    return Message(content_of(ask(socket, payload_of(message, "the coordinator"))), reply_to=message)
