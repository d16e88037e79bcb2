"""One member's letters in a place: which ones are for it, and that its own are there until they are answered.

Nothing that lies in the place can harm a pass: a file is measured before it is read, and what is no letter of a member of the
roster is left alone. It is looked at again later, because a carrier may not be done with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from securetm.data_classes import dataclass, field
from securetm.federation.courier.letters import HEAD, OVERHEAD, Head, NotALetter, Writer
from securetm.federation.courier.places import Place

AGAIN, LONGEST_AGAIN = 60.0, 3600.0  # seconds until a letter that vanished or was damaged is put there again; it doubles


@dataclass
class Sent:
    """A letter of this member's that is not answered yet, and the names under which it was put there."""

    file: bytes = field(repr=False)
    names: list[str] = field(default_factory=list)
    identity: bytes = b""  # of the letter; empty where an earlier process wrote it
    due: float = 0.0  # when it is looked after again, by a clock that never goes back
    pause: float = AGAIN


@dataclass
class Mailbox:
    """The letters of one member in one place, during one process."""

    writer: Writer
    place: Place
    once: bool = False  # whether this process makes a single pass, so that its own letters are looked after at once
    clock: Callable[[], float] = time.monotonic
    troubles: dict[str, str] = field(default_factory=dict)  # by sender: why its letters are not read
    unread: set[str] = field(default_factory=set)  # names of files that this account may not read
    _opened: dict[tuple[str, int], Head | None] = field(default_factory=dict)  # by name and length: what was opened before
    _looks: int = 0

    def heads(self, sender: str = "") -> Iterator[tuple[str, Head]]:
        """The letters to this member about this run, by the names of their files; of one sender, if it is named."""
        self._looks += 1
        files = self.place.files()
        self._opened = {key: head for key, head in self._opened.items() if files.get(key[0]) == key[1]}
        self.unread &= files.keys()
        before = set(self.unread)
        for name, length in sorted(files.items()):
            head = self._head(name, length)
            if head is None or sender not in ("", head.sender):
                continue
            if differs := head.subject.differs(self.writer.subject):
                self.troubles[head.sender] = f"another {differs} than here"
                continue
            self.troubles.pop(head.sender, None)
            yield name, head
        if self.unread - before:  # a letter that its sender has withdrawn since the list was made cannot be read either
            self.unread &= self.place.files().keys()

    def _head(self, name: str, length: int) -> Head | None:
        """The head of a file. What was no letter is tried again at the 2nd, 4th, 8th ... look."""
        known = (name, length)
        if length < OVERHEAD or (known in self._opened and (self._opened[known] or self._looks & (self._looks - 1))):
            return self._opened.get(known)
        first = self.place.read(name, HEAD)
        (self.unread.discard if first else self.unread.add)(name)
        try:
            self._opened[known], _ = self.writer.opened_head(name, first, length)
        except NotALetter:
            self._opened[known] = None
        return self._opened[known]

    def content(self, name: str, head: Head, most: int) -> bytes | None:
        """The content of a letter of at most so many bytes; nothing where the file is too long, damaged or gone."""
        if head.length > most:
            return None
        try:
            return self.writer.opened(name, head, self.place.read(name, head.length + OVERHEAD + 1))
        except NotALetter:
            return None

    def write(self, receiver: str, number: int, answers: bytes, content: bytes) -> Sent:
        """Writes a letter, and does not put it there yet."""
        head, file = self.writer.sealed(receiver, number, answers, content)
        return Sent(file, identity=head.identity)

    def look_after(self, sent: Sent) -> bool:
        """Puts a letter there, also again if it vanished or was damaged. Returns whether it was put there now."""
        now = self.clock()
        if sent.names and not self.once and now < sent.due:
            return False
        if sent.names:
            sent.pause = min(LONGEST_AGAIN, 2 * sent.pause)
        sent.due = now + sent.pause
        if any(self.place.read(name, len(sent.file) + 1) == sent.file for name in sent.names):
            return False
        sent.names.append(self.place.write(sent.file))
        return True

    def withdraw(self, sent: Sent) -> None:
        for name in sent.names:
            self.place.remove(name)


def newest(letters: Iterator[tuple[str, Head]], after: int) -> Mapping[Head, list[str]]:
    """The letters of the highest number above that one, with the files in which each lies."""
    found: dict[Head, list[str]] = {}
    highest = after
    for name, head in letters:
        if head.number > highest:
            highest, found = head.number, {}
        if head.number == highest > after:
            found.setdefault(head, []).append(name)
    return found
