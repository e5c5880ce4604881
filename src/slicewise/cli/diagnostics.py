"""Diagnostics: what is wrong in a job file and where, gathered so that all are reported at once. Imports nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

__all__ = ["JobError", "Mistake", "Mistakes", "Path", "Place", "dotted"]

#: Where a value stands in a job: the keys that lead to it, positions for items of arrays.
Path = tuple[str | int, ...]


@dataclass(frozen=True, order=True)
class Place:
    """A place in a file, line and column from 1; column 0 for a whole line, line 0 for the whole file."""

    line: int = 0
    column: int = 0


@dataclass(frozen=True)
class Mistake:
    """One thing that is wrong: where, and a message that says what, what we got and what to do.

    >>> print(Mistake("job.toml", "unknown key `sorce`; did you mean 'source'?", Place(3, 1), "[sorce]"))
    job.toml:3:1: unknown key `sorce`; did you mean 'source'?
        [sorce]
        ^
    """

    where: str
    message: str
    place: Place = Place()
    shown: str | None = None

    def __str__(self) -> str:
        at = "".join(f":{n}" for n in (self.place.line, self.place.column) if n)
        said = f"{self.where}{at}: {self.message}"
        if self.shown is None or not self.shown.strip():
            return said
        return f"{said}\n{_point_at(self.shown, self.place.column)}"


class JobError(Exception):
    """A job that cannot run, with everything that is wrong in it."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(map(str, self.mistakes)))


@dataclass
class Mistakes:
    """Gathers mistakes by the paths of the values they are about, and finds their places.

    ``places`` are those of keys and ``chars`` those of every character of a text, both by path; ``given`` says what of
    the job was given on the command line, by path.
    """

    file: str
    lines: tuple[str, ...] = ()
    places: Mapping[Path, Place] = field(default_factory=dict)
    chars: Mapping[Path, tuple[Place, ...]] = field(default_factory=dict)
    given: Mapping[Path, str] = field(default_factory=dict)
    found: list[Mistake] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.found)

    def add(self, path: Path, message: str, *, at: int | None = None) -> None:
        """Note a mistake about the value at ``path``; ``at`` is the character of the text there that it is about."""
        for n in range(len(path), 0, -1):
            if path[:n] in self.given:
                self.found.append(Mistake(self.given[path[:n]], message))
                return
        place = self._place(path, at)
        shown = self.lines[place.line - 1] if 0 < place.line <= len(self.lines) else None
        self.found.append(Mistake(self.file, message, place, shown))

    def raise_if_any(self) -> None:
        """Raise what was found, in the order of the file; what was given on the command line comes last."""
        if self.found:
            order = {id(m): (m.where != self.file, m.place) for m in self.found}
            # The same thing may be found wrong on two ways through the checks.
            raise JobError(dict.fromkeys(sorted(self.found, key=lambda m: order[id(m)])))

    def _place(self, path: Path, at: int | None) -> Place:
        chars = self.chars.get(path)
        if at is not None and chars:
            return chars[min(max(at, 0), len(chars) - 1)]
        # A key that is missing has no place: its table has.
        for n in range(len(path), 0, -1):
            if path[:n] in self.places:
                return self.places[path[:n]]
        return Place()


def dotted(path: Path) -> str:
    """The path as one writes it.

    >>> dotted(("workload", "keys", 1))
    'workload.keys[1]'
    """
    said = ""
    for part in path:
        said += f"[{part}]" if isinstance(part, int) else f".{part}" if said else part
    return said


def _point_at(line: str, column: int) -> str:
    """The line with a caret under the column; of a long one, what stands around it."""
    first = max(0, column - 80)
    shown = "".join(c if c.isprintable() else " " for c in line[first : column + 60]).rstrip()
    if not column:
        return f"    {shown.strip()}"
    strip = len(shown) - len(shown.lstrip())
    strip = min(strip, column - 1 - first)
    return f"    {shown[strip:]}\n    {' ' * (column - 1 - first - strip)}^"
