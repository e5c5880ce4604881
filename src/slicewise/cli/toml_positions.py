"""TOML positions: the line and column of each key and each character of a text, which ``tomllib`` does not give.

Scans a document that ``tomllib`` has read before, so nothing is checked here. The scan ends at the first thing it does
not understand; mistakes after that point are reported with a coarser position.
"""

from __future__ import annotations

import contextlib
import string
from bisect import bisect_right
from dataclasses import dataclass, field

from slicewise.cli.diagnostics import KeyPath, Position

__all__ = ["TomlPositions", "find_positions"]

_BARE = frozenset(string.ascii_letters + string.digits + "-_")
_BLANK = " \t"
_SPACE = " \t\n"
_ESCAPED = {"u": 4, "U": 8}
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", "f": "\f", "r": "\r"}


@dataclass(frozen=True)
class TomlPositions:
    """Positions by path: ``keys`` of keys and items of arrays, ``chars`` of the characters of texts and of their end.

    >>> positions = find_positions('[a]\\nb = "xy"\\n')
    >>> positions.keys["a", "b"], positions.chars["a", "b"][1]
    (Position(line=2, column=1), Position(line=2, column=7))
    """

    keys: dict[KeyPath, Position] = field(default_factory=dict)
    chars: dict[KeyPath, tuple[Position, ...]] = field(default_factory=dict)


def find_positions(text: str) -> TomlPositions:
    """The positions in a valid TOML text whose lines end with ``\\n``."""
    scan = _Scan(text)
    with contextlib.suppress(IndexError, ValueError, RecursionError):
        scan.document()
    return scan.positions


class _Scan:
    def __init__(self, text: str) -> None:
        self.text = text + "\n"
        self.at = 0
        self.positions = TomlPositions()
        self._starts = [0] + [i + 1 for i, c in enumerate(self.text) if c == "\n"]
        self._counts: dict[KeyPath, int] = {}

    def document(self) -> None:
        table: KeyPath = ()
        while self._skip(_SPACE):
            if self._char() == "[":
                table = self._header()
            else:
                self._pair(table)

    def _char(self) -> str:
        return self.text[self.at]

    def _position(self, at: int) -> Position:
        line = bisect_right(self._starts, at)
        return Position(line, at - self._starts[line - 1] + 1)

    def _skip(self, blanks: str) -> bool:
        """Skip blanks and comments; False at the end of the text."""
        while self.at < len(self.text):
            if self._char() in blanks:
                self.at += 1
            elif self._char() == "#":
                self.at = self.text.index("\n", self.at)
                if "\n" not in blanks:
                    break
            else:
                break
        return self.at < len(self.text)

    def _header(self) -> KeyPath:
        """``[a.b]``, or ``[[a.b]]``, which begins another item of an array of tables."""
        start, is_array = self.at, self.text.startswith("[[", self.at)
        self.at += 2 if is_array else 1
        path = self._key(())[0]
        self.at = self.text.index("]", self.at) + (2 if is_array else 1)
        if is_array:
            n = self._counts[path] = self._counts.get(path, -1) + 1
            self.positions.keys.setdefault(path, self._position(start))
            path = (*path, n)
        self.positions.keys[path] = self._position(start)
        for n in range(1, len(path)):  # [a.b] defines `a`, too
            self.positions.keys.setdefault(path[:n], self._position(start))
        return path

    def _pair(self, table: KeyPath) -> None:
        start = self.at
        path, starts = self._key(table)
        self.at = self.text.index("=", self.at) + 1
        for n, at in enumerate(starts, len(table) + 1):
            self.positions.keys.setdefault(path[:n], self._position(at))
        self._skip(_BLANK)
        self._value(path)
        assert self.at > start

    def _key(self, table: KeyPath) -> tuple[KeyPath, list[int]]:
        """A dotted key, and the index at which each of its parts begins."""
        path: KeyPath = table
        starts: list[int] = []
        while True:
            self._skip(_BLANK)
            starts.append(self.at)
            if self._char() in "'\"":
                part = self._text()[0]
            else:
                end = self.at
                while self.text[end] in _BARE:
                    end += 1
                if end == self.at:
                    raise IndexError  # not a key, so the scan cannot go on
                part, self.at = self.text[self.at : end], end
            path = (*path, part)
            self._skip(_BLANK)
            if self._char() != ".":
                return path, starts
            self.at += 1

    def _value(self, path: KeyPath) -> None:
        char = self._char()
        if char in "'\"":
            _, indices = self._text()
            self.positions.chars[path] = tuple(self._position(at) for at in indices)
        elif char == "[":
            self._array(path)
        elif char == "{":
            self._inline_table(path)
        else:
            while self._char() not in ",]}#\n":
                self.at += 1

    def _array(self, path: KeyPath) -> None:
        self.at, n = self.at + 1, 0
        while self._skip(_SPACE) and self._char() != "]":
            if self._char() == ",":
                self.at += 1
                continue
            self.positions.keys[(*path, n)] = self._position(self.at)
            self._value((*path, n))
            n += 1
        self.at += 1

    def _inline_table(self, path: KeyPath) -> None:
        self.at += 1
        while self._skip(_SPACE) and self._char() != "}":
            if self._char() == ",":
                self.at += 1
            else:
                self._pair(path)
        self.at += 1

    def _text(self) -> tuple[str, list[int]]:
        """A text of any of the four kinds, with the index of each of its characters and of its end."""
        quote = self._char()
        ends = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        self.at += len(ends)
        if len(ends) == 3 and self._char() == "\n":
            self.at += 1
        chars: list[str] = []
        indices: list[int] = []
        while not self._ends(ends):
            if self._char() == "\\" and quote == '"':
                self._escape(chars, indices)
            else:
                indices.append(self.at)
                chars.append(self._char())
                self.at += 1
        indices.append(self.at)
        self.at += len(ends)
        return "".join(chars), indices

    def _ends(self, ends: str) -> bool:
        # Up to two quotes may come right before the three that end a text.
        return self.text.startswith(ends, self.at) and not (len(ends) == 3 and self.text[self.at + 3] == ends[0])

    def _escape(self, chars: list[str], indices: list[int]) -> None:
        start, kind = self.at, self.text[self.at + 1]
        if kind in _BLANK + "\n":  # a continued line: blanks up to the next word are not part of the text
            self.at += 1
            while self._char() in _SPACE:
                self.at += 1
            return
        digits = _ESCAPED.get(kind, 0)
        self.at += 2 + digits
        indices.append(start)
        escaped = self.text[start + 2 : self.at]
        chars.append(chr(int(escaped, 16)) if digits else _ESCAPES.get(kind, kind))
