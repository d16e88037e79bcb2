from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Challenge(_message.Message):
    __slots__ = ("nonce",)
    NONCE_FIELD_NUMBER: _ClassVar[int]
    nonce: bytes
    def __init__(self, nonce: _Optional[bytes] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("versions", "name", "federation", "roster", "agreement", "profile", "nonce", "signature", "declines")
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    FEDERATION_FIELD_NUMBER: _ClassVar[int]
    ROSTER_FIELD_NUMBER: _ClassVar[int]
    AGREEMENT_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    DECLINES_FIELD_NUMBER: _ClassVar[int]
    versions: _containers.RepeatedScalarFieldContainer[int]
    name: str
    federation: str
    roster: bytes
    agreement: bytes
    profile: bytes
    nonce: bytes
    signature: bytes
    declines: str
    def __init__(self, versions: _Optional[_Iterable[int]] = ..., name: _Optional[str] = ..., federation: _Optional[str] = ..., roster: _Optional[bytes] = ..., agreement: _Optional[bytes] = ..., profile: _Optional[bytes] = ..., nonce: _Optional[bytes] = ..., signature: _Optional[bytes] = ..., declines: _Optional[str] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("version", "epoch", "signature")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    version: int
    epoch: bytes
    signature: bytes
    def __init__(self, version: _Optional[int] = ..., epoch: _Optional[bytes] = ..., signature: _Optional[bytes] = ...) -> None: ...

class Rejected(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class Begin(_message.Message):
    __slots__ = ("number", "length")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    number: int
    length: int
    def __init__(self, number: _Optional[int] = ..., length: _Optional[int] = ...) -> None: ...

class End(_message.Message):
    __slots__ = ("digest",)
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    digest: bytes
    def __init__(self, digest: _Optional[bytes] = ...) -> None: ...

class Frame(_message.Message):
    __slots__ = ("challenge", "hello", "welcome", "rejected", "begin", "chunk", "end")
    CHALLENGE_FIELD_NUMBER: _ClassVar[int]
    HELLO_FIELD_NUMBER: _ClassVar[int]
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    REJECTED_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    challenge: Challenge
    hello: Hello
    welcome: Welcome
    rejected: Rejected
    begin: Begin
    chunk: bytes
    end: End
    def __init__(self, challenge: _Optional[_Union[Challenge, _Mapping]] = ..., hello: _Optional[_Union[Hello, _Mapping]] = ..., welcome: _Optional[_Union[Welcome, _Mapping]] = ..., rejected: _Optional[_Union[Rejected, _Mapping]] = ..., begin: _Optional[_Union[Begin, _Mapping]] = ..., chunk: _Optional[bytes] = ..., end: _Optional[_Union[End, _Mapping]] = ...) -> None: ...
