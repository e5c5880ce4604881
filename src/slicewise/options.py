"""Options: how a workload is run on Spark, as opposed to what it computes. A leaf that `run` and job files read.

An option is defined here and nowhere else: its default, the words it may be, and whether only streams or only batches
have it. :meth:`slicewise.Workload.run` documents what each one means.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from slicewise.errors import QueryError, did_you_mean, one_of

__all__ = ["BATCHES", "FLAG", "SIZE", "STREAMS", "TEXT", "Option", "RunOptions"]

STREAMS, BATCHES = "streams", "batches"
#: What options are: a word or a duration, yes or no, or a number of rows.
TEXT, FLAG, SIZE = "text", "flag", "size"


@dataclass(frozen=True)
class Option:
    """One option: ``words`` are its possible values, empty for what is of another ``kind``; ``only`` and ``why`` say
    where. ``streaming`` are words that only streams have."""

    name: str
    default: Any
    words: tuple[str, ...] = ()
    kind: str = TEXT
    only: str | None = None
    why: str = ""
    streaming: tuple[str, ...] = ()

    def place_of(self, value: Any) -> str | None:
        """Where a value of it may stand, if not everywhere."""
        return STREAMS if value in self.streaming else self.only


def _option(default: Any, *words: str, kind: str = TEXT, streaming: tuple[str, ...] = (), **where: str) -> Any:
    return dataclasses.field(default=default, metadata={"words": words, "kind": kind, "streaming": streaming, **where})


@dataclass(frozen=True)
class RunOptions:
    """The options of :meth:`slicewise.Workload.run`.

    >>> RunOptions(emit="changes").non_defaults()
    {'emit': 'changes'}
    >>> [option.name for option in RunOptions.all() if option.only == BATCHES]
    ['shuffle']
    """

    late: str | None = _option(None, "collect")
    emit: str = _option("complete", "complete", "changes", "differences", streaming=("changes",))
    shape: str = _option("long", "long", "wide")
    idle: str | None = _option(None, only=STREAMS)
    bad: str | None = _option(None, "fail")
    ahead: str | None = _option(None, only=STREAMS, why="a batch has no clock that a second run would share")
    shuffle: str | None = _option(None, "slices", "rows", only=BATCHES)
    ordered: bool = _option(False, kind=FLAG)
    store: str | None = _option(None, "lazy", "eager", "prefix")
    max_slice: int | str | None = _option(None, kind=SIZE)

    @classmethod
    def all(cls) -> Iterator[Option]:
        """All options."""
        for field in dataclasses.fields(cls):
            yield Option(field.name, getattr(cls, field.name), **field.metadata)

    def non_defaults(self) -> dict[str, Any]:
        """The options whose values differ from their defaults."""
        values = {option.name: getattr(self, option.name) for option in self.all()}
        return {option.name: values[option.name] for option in self.all() if values[option.name] != option.default}

    def check(self, *, stream: bool) -> None:
        """Refuse unknown words, and options that a stream or a batch does not have."""
        given = self.non_defaults()
        for option in self.all():
            value = given.get(option.name)
            if value is not None and option.words and value not in option.words:
                words = one_of(option.words)
                tip = did_you_mean(str(value), option.words)
                raise QueryError(f"`{option.name}` must be {words}; got {value!r}; {tip}", parameter=option.name)
        if not isinstance(self.ordered, bool):
            raise QueryError(f"`ordered` must be True or False; got {self.ordered!r}", parameter="ordered")
        here, there = ("stream", BATCHES) if stream else ("batch", STREAMS)
        for option in self.all():
            value = given.get(option.name)
            if option.name in given and option.place_of(value) == there:
                why = f"; {option.why}" if option.why else ""
                shown = f"{option.name}={value!r}" if option.streaming else f"`{option.name}`"
                raise QueryError(
                    f"{shown} is for {there}, and this DataFrame is a {here}{why}; leave it out",
                    parameter=option.name,
                )
