"""TOML positions: where each key and each character of a text stands in a TOML file, which ``tomllib`` does not tell.

A scan of a text that ``tomllib`` has read already, so nothing is checked here. What the scan does not understand ends
it, and mistakes after that are reported with less of a place.
"""

from __future__ import annotations

import contextlib
import string
from bisect import bisect_right
from dataclasses import dataclass, field

from slicewise.cli.diagnostics import Path, Place

__all__ = ["Lines", "find_lines"]

_BARE = frozenset(string.ascii_letters + string.digits + "-_")
_BLANK = " \t"
_SPACE = " \t\n"
_ESCAPED = {"u": 4, "U": 8}
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", "f": "\f", "r": "\r"}


@dataclass(frozen=True)
class Lines:
    """Places by path: of keys (and items of arrays), and of the characters of texts, one more for their end.

    >>> found = find_lines('[a]\\nb = "xy"\\n')
    >>> found.keys["a", "b"], found.chars["a", "b"][1]
    (Place(line=2, column=1), Place(line=2, column=7))
    """

    keys: dict[Path, Place] = field(default_factory=dict)
    chars: dict[Path, tuple[Place, ...]] = field(default_factory=dict)


def find_lines(text: str) -> Lines:
    """Where things stand in a valid TOML text; lines end with ``\\n``."""
    scan = _Scan(text)
    with contextlib.suppress(IndexError, ValueError, RecursionError):
        scan.document()
    return scan.found


class _Scan:
    def __init__(self, text: str) -> None:
        self.text = text + "\n"
        self.at = 0
        self.found = Lines()
        self._starts = [0] + [i + 1 for i, c in enumerate(self.text) if c == "\n"]
        self._counts: dict[Path, int] = {}

    def document(self) -> None:
        table: Path = ()
        while self._skip(_SPACE):
            if self._char() == "[":
                table = self._header()
            else:
                self._pair(table)

    def _char(self) -> str:
        return self.text[self.at]

    def _place(self, at: int) -> Place:
        line = bisect_right(self._starts, at)
        return Place(line, at - self._starts[line - 1] + 1)

    def _skip(self, blanks: str) -> bool:
        """Go on to what is no blank and no comment; False at the end."""
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

    def _header(self) -> Path:
        """``[a.b]``, or ``[[a.b]]``, which begins one more item of an array of tables."""
        start, many = self.at, self.text.startswith("[[", self.at)
        self.at += 2 if many else 1
        path = self._key(())[0]
        self.at = self.text.index("]", self.at) + (2 if many else 1)
        if many:
            n = self._counts[path] = self._counts.get(path, -1) + 1
            self.found.keys.setdefault(path, self._place(start))
            path = (*path, n)
        self.found.keys[path] = self._place(start)
        for n in range(1, len(path)):  # [a.b] says that there is an `a`, too
            self.found.keys.setdefault(path[:n], self._place(start))
        return path

    def _pair(self, table: Path) -> None:
        start = self.at
        path, starts = self._key(table)
        self.at = self.text.index("=", self.at) + 1
        for n, at in enumerate(starts, len(table) + 1):
            self.found.keys.setdefault(path[:n], self._place(at))
        self._skip(_BLANK)
        self._value(path)
        assert self.at > start

    def _key(self, table: Path) -> tuple[Path, list[int]]:
        """A dotted key, and where each of its parts begins."""
        path: Path = table
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
                    raise IndexError  # not a key; the text is not what we took it for
                part, self.at = self.text[self.at : end], end
            path = (*path, part)
            self._skip(_BLANK)
            if self._char() != ".":
                return path, starts
            self.at += 1

    def _value(self, path: Path) -> None:
        char = self._char()
        if char in "'\"":
            _, places = self._text()
            self.found.chars[path] = tuple(self._place(at) for at in places)
        elif char == "[":
            self._array(path)
        elif char == "{":
            self._inline_table(path)
        else:
            while self._char() not in ",]}#\n":
                self.at += 1

    def _array(self, path: Path) -> None:
        self.at, n = self.at + 1, 0
        while self._skip(_SPACE) and self._char() != "]":
            if self._char() == ",":
                self.at += 1
                continue
            self.found.keys[(*path, n)] = self._place(self.at)
            self._value((*path, n))
            n += 1
        self.at += 1

    def _inline_table(self, path: Path) -> None:
        self.at += 1
        while self._skip(_SPACE) and self._char() != "}":
            if self._char() == ",":
                self.at += 1
            else:
                self._pair(path)
        self.at += 1

    def _text(self) -> tuple[str, list[int]]:
        """A text of any of the four kinds, and for each of its characters, and its end, where it stands."""
        quote = self._char()
        ends = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        self.at += len(ends)
        if len(ends) == 3 and self._char() == "\n":
            self.at += 1
        chars: list[str] = []
        places: list[int] = []
        while not self._ends(ends):
            if self._char() == "\\" and quote == '"':
                self._escape(chars, places)
            else:
                places.append(self.at)
                chars.append(self._char())
                self.at += 1
        places.append(self.at)
        self.at += len(ends)
        return "".join(chars), places

    def _ends(self, ends: str) -> bool:
        # Up to two quotes may stand right before the three that end a text.
        return self.text.startswith(ends, self.at) and not (len(ends) == 3 and self.text[self.at + 3] == ends[0])

    def _escape(self, chars: list[str], places: list[int]) -> None:
        start, kind = self.at, self.text[self.at + 1]
        if kind in _BLANK + "\n":  # a line that goes on: blanks up to the next word are no part of the text
            self.at += 1
            while self._char() in _SPACE:
                self.at += 1
            return
        digits = _ESCAPED.get(kind, 0)
        self.at += 2 + digits
        places.append(start)
        escaped = self.text[start + 2 : self.at]
        chars.append(chr(int(escaped, 16)) if digits else _ESCAPES.get(kind, kind))
