from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Array(_message.Message):
    __slots__ = ("name", "dtype", "shape", "data")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    name: str
    dtype: str
    shape: _containers.RepeatedScalarFieldContainer[int]
    data: bytes
    def __init__(self, name: _Optional[str] = ..., dtype: _Optional[str] = ..., shape: _Optional[_Iterable[int]] = ..., data: _Optional[bytes] = ...) -> None: ...

class Invite(_message.Message):
    __slots__ = ("agreement", "profile", "members", "resume_from")
    AGREEMENT_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    RESUME_FROM_FIELD_NUMBER: _ClassVar[int]
    agreement: bytes
    profile: bytes
    members: _containers.RepeatedScalarFieldContainer[str]
    resume_from: int
    def __init__(self, agreement: _Optional[bytes] = ..., profile: _Optional[bytes] = ..., members: _Optional[_Iterable[str]] = ..., resume_from: _Optional[int] = ...) -> None: ...

class Adopt(_message.Message):
    __slots__ = ("words", "candidates")
    WORDS_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    words: bytes
    candidates: bool
    def __init__(self, words: _Optional[bytes] = ..., candidates: bool = ...) -> None: ...

class Ask(_message.Message):
    __slots__ = ("question", "number", "serial", "members", "round_id", "state", "keep", "after", "witnesses", "least_parties", "least_documents")
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    SERIAL_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    ROUND_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    WITNESSES_FIELD_NUMBER: _ClassVar[int]
    LEAST_PARTIES_FIELD_NUMBER: _ClassVar[int]
    LEAST_DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    question: str
    number: int
    serial: int
    members: _containers.RepeatedScalarFieldContainer[str]
    round_id: bytes
    state: _containers.RepeatedCompositeFieldContainer[Array]
    keep: bool
    after: _containers.RepeatedScalarFieldContainer[int]
    witnesses: _containers.RepeatedScalarFieldContainer[bytes]
    least_parties: int
    least_documents: int
    def __init__(self, question: _Optional[str] = ..., number: _Optional[int] = ..., serial: _Optional[int] = ..., members: _Optional[_Iterable[str]] = ..., round_id: _Optional[bytes] = ..., state: _Optional[_Iterable[_Union[Array, _Mapping]]] = ..., keep: bool = ..., after: _Optional[_Iterable[int]] = ..., witnesses: _Optional[_Iterable[bytes]] = ..., least_parties: _Optional[int] = ..., least_documents: _Optional[int] = ...) -> None: ...

class Witness(_message.Message):
    __slots__ = ("heads", "links")
    HEADS_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    heads: _containers.RepeatedScalarFieldContainer[bytes]
    links: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, heads: _Optional[_Iterable[bytes]] = ..., links: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Links(_message.Message):
    __slots__ = ("statements",)
    STATEMENTS_FIELD_NUMBER: _ClassVar[int]
    statements: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, statements: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Prepare(_message.Message):
    __slots__ = ("exchange", "number", "rounds")
    EXCHANGE_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    exchange: bytes
    number: int
    rounds: int
    def __init__(self, exchange: _Optional[bytes] = ..., number: _Optional[int] = ..., rounds: _Optional[int] = ...) -> None: ...

class Share(_message.Message):
    __slots__ = ("exchange", "purpose", "state")
    EXCHANGE_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    exchange: bytes
    purpose: str
    state: _containers.RepeatedCompositeFieldContainer[Array]
    def __init__(self, exchange: _Optional[bytes] = ..., purpose: _Optional[str] = ..., state: _Optional[_Iterable[_Union[Array, _Mapping]]] = ...) -> None: ...

class Forward(_message.Message):
    __slots__ = ("round_id", "parcel")
    ROUND_ID_FIELD_NUMBER: _ClassVar[int]
    PARCEL_FIELD_NUMBER: _ClassVar[int]
    round_id: bytes
    parcel: bytes
    def __init__(self, round_id: _Optional[bytes] = ..., parcel: _Optional[bytes] = ...) -> None: ...

class Finish(_message.Message):
    __slots__ = ("state", "rounds")
    STATE_FIELD_NUMBER: _ClassVar[int]
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    state: _containers.RepeatedCompositeFieldContainer[Array]
    rounds: int
    def __init__(self, state: _Optional[_Iterable[_Union[Array, _Mapping]]] = ..., rounds: _Optional[int] = ...) -> None: ...

class Request(_message.Message):
    __slots__ = ("version", "session", "invite", "adopt", "ask", "forward", "prepare", "witness", "links", "finish", "share")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    INVITE_FIELD_NUMBER: _ClassVar[int]
    ADOPT_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    FORWARD_FIELD_NUMBER: _ClassVar[int]
    PREPARE_FIELD_NUMBER: _ClassVar[int]
    WITNESS_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    FINISH_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    version: int
    session: bytes
    invite: Invite
    adopt: Adopt
    ask: Ask
    forward: Forward
    prepare: Prepare
    witness: Witness
    links: Links
    finish: Finish
    share: Share
    def __init__(self, version: _Optional[int] = ..., session: _Optional[bytes] = ..., invite: _Optional[_Union[Invite, _Mapping]] = ..., adopt: _Optional[_Union[Adopt, _Mapping]] = ..., ask: _Optional[_Union[Ask, _Mapping]] = ..., forward: _Optional[_Union[Forward, _Mapping]] = ..., prepare: _Optional[_Union[Prepare, _Mapping]] = ..., witness: _Optional[_Union[Witness, _Mapping]] = ..., links: _Optional[_Union[Links, _Mapping]] = ..., finish: _Optional[_Union[Finish, _Mapping]] = ..., share: _Optional[_Union[Share, _Mapping]] = ...) -> None: ...

class Refusal(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class Accept(_message.Message):
    __slots__ = ("parcels", "head", "least_parties", "least_documents")
    PARCELS_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    LEAST_PARTIES_FIELD_NUMBER: _ClassVar[int]
    LEAST_DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    parcels: _containers.RepeatedScalarFieldContainer[bytes]
    head: bytes
    least_parties: int
    least_documents: int
    def __init__(self, parcels: _Optional[_Iterable[bytes]] = ..., head: _Optional[bytes] = ..., least_parties: _Optional[int] = ..., least_documents: _Optional[int] = ...) -> None: ...

class Reply(_message.Message):
    __slots__ = ("version", "session", "accept", "refusal")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    version: int
    session: bytes
    accept: Accept
    refusal: Refusal
    def __init__(self, version: _Optional[int] = ..., session: _Optional[bytes] = ..., accept: _Optional[_Union[Accept, _Mapping]] = ..., refusal: _Optional[_Union[Refusal, _Mapping]] = ...) -> None: ...
