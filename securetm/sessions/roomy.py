"""A message in a buffer with room around it, so that whoever puts it into an envelope copies nothing. It hides nothing.

A masked vector may have hundreds of megabytes. It is masked where it lies, its signed header is written in front of it, and
the reply that carries it around both.
"""

from __future__ import annotations

from securetm.contracts import Message

LONG = 1 << 20  # bytes from which on a message is handed on as it lies, and not as bytes of its own
ROOM = 1 << 12  # bytes in front and behind


class Roomy(bytearray):
    """The buffer of one message. What was handed out of it is never written again."""

    def __init__(self, length: int) -> None:
        super().__init__(ROOM + length + ROOM)
        self._start, self._end = ROOM, ROOM + length

    @property
    def content(self) -> memoryview:
        """The message as far as it is written. It begins where numbers of any width may lie."""
        return memoryview(self)[self._start : self._end]

    def enclose(self, before: bytes, behind: bytes = b"") -> Message:
        """Writes these bytes around the message, and returns the whole: bytes of its own if it is short.

        Where it is long, that is a view that nobody can write to: to be measured, cut, hashed and sent.
        """
        if len(before) > self._start or len(behind) > len(self) - self._end:
            return b"".join((before, self.content, behind))
        with memoryview(self) as whole:
            whole[self._start - len(before) : self._start] = before
            whole[self._end : self._end + len(behind)] = behind
        self._start, self._end = self._start - len(before), self._end + len(behind)
        return self.content.toreadonly() if len(self.content) >= LONG else bytes(self.content)


def enclosed(before: bytes, message: Message, behind: bytes = b"") -> Message:
    """Returns a message between these bytes. Where it is all that lies in a roomy buffer, nothing is copied."""
    room: object = message.obj if isinstance(message, memoryview) else None
    if isinstance(room, Roomy) and len(room.content) == len(message):
        return room.enclose(before, behind)
    return b"".join((before, message, behind))
