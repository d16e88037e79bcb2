"""The generated messages are those of the contracts: `make stubs` was not forgotten after a change of a .proto file."""

from __future__ import annotations

from pathlib import Path

import pytest

from securetm.federation.network import network_pb2
from securetm.federation.wire import wire_pb2
from securetm.resources import data_folder

STUBS = {"wire": wire_pb2, "network": network_pb2}


@pytest.mark.parametrize("name", STUBS)
def test_the_stubs_follow_the_contract(tmp_path: Path, name: str) -> None:
    protoc = pytest.importorskip("grpc_tools.protoc", reason="grpcio-tools makes the stubs (pip install .[dev])")
    compiled, contract = tmp_path / "compiled.pb", f"securetm/federation/{name}/{name}.proto"
    assert protoc.main(["protoc", f"-I{data_folder('protocols')}", f"--descriptor_set_out={compiled}", contract]) == 0
    from google.protobuf import descriptor_pb2

    (file,) = descriptor_pb2.FileDescriptorSet.FromString(compiled.read_bytes()).file
    generated = descriptor_pb2.FileDescriptorProto.FromString(STUBS[name].DESCRIPTOR.serialized_pb)
    for proto in (file, generated):  # protoc may write down the short names for JSON, which nobody here reads
        for message in proto.message_type:
            for part in message.field:
                part.ClearField("json_name")
    assert file == generated
