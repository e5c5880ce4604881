"""Diagnostics: what is wrong in a job file and where, collected so that everything is reported at once.

Imports nothing of slicewise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

__all__ = ["Diagnostic", "Diagnostics", "JobError", "KeyPath", "Position", "dotted"]

#: Where a value is in a job: the keys that lead to it, with indices for items of arrays.
KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, order=True)
class Position:
    """A position in a file, line and column from 1; column 0 is a whole line, line 0 the whole file."""

    line: int = 0
    column: int = 0


@dataclass(frozen=True)
class Diagnostic:
    """One mistake: where it is, and a message with what is wrong, what we got and what to do.

    >>> print(Diagnostic("job.toml", "unknown key `sorce`; did you mean 'source'?", Position(3, 1), "[sorce]"))
    job.toml:3:1: unknown key `sorce`; did you mean 'source'?
        [sorce]
        ^
    """

    origin: str
    message: str
    position: Position = Position()
    source_line: str | None = None

    def __str__(self) -> str:
        at = "".join(f":{n}" for n in (self.position.line, self.position.column) if n)
        headline = f"{self.origin}{at}: {self.message}"
        if self.source_line is None or not self.source_line.strip():
            return headline
        return f"{headline}\n{_with_caret(self.source_line, self.position.column)}"


class JobError(Exception):
    """A job that cannot run, with everything that is wrong in it."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(map(str, self.diagnostics)))


@dataclass
class Diagnostics:
    """Collects mistakes by the paths of the values they are about, and looks up their positions.

    ``keys`` has the positions of keys and ``chars`` those of every character of a text, both by path. ``overrides`` has
    the values that come from the command line, by path, each as it was written there.
    """

    file: str
    lines: tuple[str, ...] = ()
    keys: Mapping[KeyPath, Position] = field(default_factory=dict)
    chars: Mapping[KeyPath, tuple[Position, ...]] = field(default_factory=dict)
    overrides: Mapping[KeyPath, str] = field(default_factory=dict)
    entries: list[Diagnostic] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.entries)

    def add(self, path: KeyPath, message: str, *, at: int | None = None) -> None:
        """Add a mistake about the value at ``path``; ``at`` is the index of the character it is about, if any."""
        for n in range(len(path), 0, -1):
            if path[:n] in self.overrides:
                self.entries.append(Diagnostic(self.overrides[path[:n]], message))
                return
        position = self._position(path, at)
        source_line = self.lines[position.line - 1] if 0 < position.line <= len(self.lines) else None
        self.entries.append(Diagnostic(self.file, message, position, source_line))

    def raise_if_any(self) -> None:
        """Raise what was collected, in the order of the file; mistakes of the command line come last."""
        if self.entries:
            # The same mistake may be met by two of the checks.
            raise JobError(dict.fromkeys(sorted(self.entries, key=lambda d: (d.origin != self.file, d.position))))

    def _position(self, path: KeyPath, at: int | None) -> Position:
        chars = self.chars.get(path)
        if at is not None and chars:
            return chars[min(max(at, 0), len(chars) - 1)]
        # A missing key has no position, so the table it belongs to stands in for it.
        for n in range(len(path), 0, -1):
            if path[:n] in self.keys:
                return self.keys[path[:n]]
        return Position()


def dotted(path: KeyPath) -> str:
    """The path as one writes it.

    >>> dotted(("workload", "keys", 1))
    'workload.keys[1]'
    """
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _with_caret(line: str, column: int) -> str:
    """The line with a caret under the column; of a long line, the part around it."""
    first = max(0, column - 80)
    shown = "".join(c if c.isprintable() else " " for c in line[first : column + 60]).rstrip()
    if not column:
        return f"    {shown.strip()}"
    strip = len(shown) - len(shown.lstrip())
    strip = min(strip, column - 1 - first)
    return f"    {shown[strip:]}\n    {' ' * (column - 1 - first - strip)}^"
