"""Sketches: partials of bounded size, answers with a known error. Needs the extra ``sketch``.

The sketches are those of Apache DataSketches, whose bytes are the same in every language: Spark's own sketch functions
make and read them too. A partial is the bytes of one sketch, and empty where there is no value; partials are read,
merged and written again. Of rows, each slice is sketched at once, its duplicates left out or counted before.
"""

from __future__ import annotations

import importlib.util
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Aggregate, Monoid, Parts
from slicewise.aggregates.checks import OneColumn, need_types
from slicewise.aggregates.distinct import CountDistinct
from slicewise.aggregates.histograms import HistogramMonoid
from slicewise.columns import Column, column_of_objects, is_integral
from slicewise.errors import AggregateError, MissingPackageError
from slicewise.ragged import Ragged

__all__ = ["OfSketch", "SketchMonoid", "as_sketched", "check_size", "need_hashable", "package"]


def package() -> Any:
    """The package of sketches, which takes a while to load."""
    import datasketches

    return datasketches


class OfSketch(OneColumn):
    """An aggregate whose partial is a sketch, as bytes; empty bytes stand for no values."""

    commutative = True
    kind = "sketch"
    #: What the error of an answer is, for pages.
    error: ClassVar[str]
    identity = b""
    #: Single values are sketched as they are, whatever they are.
    takes_all = False

    def __init__(self, column: str | None = None) -> None:
        super().__init__(column)
        if importlib.util.find_spec("datasketches") is None:
            raise MissingPackageError(
                f"`{self.name}` needs the package datasketches, which is not installed; pip install 'slicewise[sketch]'"
            )

    @abstractmethod
    def of_values(self, values: Iterable[Any], counts: Iterable[int]) -> bytes:
        """The sketch of different values, each as often as it is counted."""

    @abstractmethod
    def merged(self, sketches: Sequence[bytes]) -> bytes:
        """The sketch of all that several, none of them empty, are of."""

    @abstractmethod
    def need(self, type_: pa.DataType) -> None:
        """Refuse columns of types that cannot be sketched."""

    def lift(self, *values: Any) -> bytes:
        return self.of_values(values if self.takes_all else [_as_update(values[0])], [1])

    def lower_as(self, partial: bytes, type_: pa.DataType) -> Any:
        """The result for a column of this type."""
        return self.lower(partial)

    def combine(self, a: bytes, b: bytes) -> bytes:
        return self.merged((a, b)) if a and b else a or b

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        self.need(types[0])
        return SketchMonoid(self, types)


class SketchMonoid(Monoid):
    """One part, of bytes. A segment is merged in one step: a sketch is read once, and written once."""

    aggregate: OfSketch
    identity = (b"",)
    dtypes = (np.dtype(object),)

    def __init__(self, aggregate: OfSketch, types: Sequence[pa.DataType]) -> None:
        super().__init__(aggregate, types)
        result = aggregate.result_type(*types)
        assert result is not None
        self.result = result

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        return self.lift_fold(columns, times, np.arange(len(times)))

    def lift_fold(self, columns: Sequence[Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        (runs,) = CountDistinct().bind(columns[0].type).lift_fold(columns[:1], times, starts)
        return self._sketched(runs, columns[0].type)

    def of_lists(self, lengths: np.ndarray, columns: Sequence[Column]) -> Parts:
        """A partial for each list of values without nulls; the lists are so long, and stand end to end."""
        monoid = CountDistinct().bind(columns[0].type)
        assert isinstance(monoid, HistogramMonoid)
        (runs,) = monoid.of_lists(lengths, columns)
        return self._sketched(runs, columns[0].type)

    def _sketched(self, runs: Ragged, type_: pa.DataType) -> Parts:
        values, counts = self._updates(runs.columns[0], type_), runs.columns[1]
        out = np.empty(len(runs), object)
        at = 0
        for i, end in enumerate(np.cumsum(runs.lengths).tolist()):
            out[i] = self.aggregate.of_values(values[at:end], counts[at:end]) if end > at else b""
            at = end
        return (out,)

    def _updates(self, values: np.ndarray, type_: pa.DataType) -> Any:
        """The values of a histogram as sketches of this kind are updated with them."""
        return as_sketched(values, type_)

    def combine(self, a: Parts, b: Parts) -> Parts:
        out = np.empty(len(a[0]), object)
        out[:] = [self.aggregate.combine(x, y) for x, y in zip(a[0], b[0], strict=True)]
        return (out,)

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        sketches = parts[0].tolist()
        out = np.empty(len(starts), object)
        for i, (start, end) in enumerate(pairwise([*starts.tolist(), len(sketches)])):
            some = [sketch for sketch in sketches[start:end] if sketch]
            out[i] = self.aggregate.merged(some) if len(some) > 1 else some[0] if some else b""
        return (out,)

    def lower(self, parts: Parts) -> Column:
        lowered = [self.aggregate.lower_as(sketch, self.types[0]) for sketch in parts[0].tolist()]
        return column_of_objects(lowered, self.result)


def as_sketched(values: np.ndarray, type_: pa.DataType) -> Any:
    """The values of a histogram as sketches are updated with them: numbers or text."""
    if values.dtype != object:
        return values.tolist()
    if pa.types.is_decimal(type_):
        return [str(v) for v in values.tolist()]
    return list(map(_as_update, values.tolist()))


def _as_update(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return value if isinstance(value, (int, float, str)) else str(value)


def need_hashable(aggregate: Aggregate, type_: pa.DataType, *, as_spark: bool) -> None:
    """Refuse what cannot be hashed, or not as Spark's sketch of the same name does."""
    t = pa.types
    text = t.is_string(type_) or t.is_large_string(type_) or t.is_string_view(type_)
    if text or (t.is_integer(type_) if as_spark else is_integral(type_) or t.is_floating(type_)):
        return
    if not as_spark and (t.is_decimal(type_) or t.is_binary(type_) or t.is_large_binary(type_)):
        return
    subject = f"`{aggregate.name}` of column {aggregate.columns[0]!r}" if aggregate.columns else f"`{aggregate.name}`"
    what = "integers or text, which Python and Spark hash alike" if as_spark else "numbers, text, bytes or times"
    raise AggregateError(f"{subject} needs {what}; got {type_}: cast the column to string first")


def check_size(name: str, parameter: str, size: Any, low: int, high: int) -> int:
    """A size of a sketch."""
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or not low <= size <= high:
        raise AggregateError(f"`{parameter}` of `{name}` must be a whole number from {low} to {high}; got {size!r}")
    return int(size)
