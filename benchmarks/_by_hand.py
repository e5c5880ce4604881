"""Window aggregates as one writes them by hand on Spark: slices of a second, then a RANGE frame over them.

Textbook formulas of sums, with the digits that those leave. Of pairs, the first column is ``x`` and the second ``y``,
as the benchmark of aggregates makes them: in a regression ``x`` depends on ``y``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

__all__ = ["BY_HAND", "by_hand"]

_Column = Callable[[], Column]


def by_hand(frame: DataFrame, names: Sequence[str], length: int) -> DataFrame:
    """These aggregates by key ``k`` and second ``s``, over so many seconds that end with it."""
    needed = dict.fromkeys(part for name in names for part in BY_HAND[name][0])
    slices = frame.groupBy("k", F.expr("unix_micros(ts) div 1000000").alias("s"))
    parts = slices.agg(*(_PARTS[part][0]().alias(part) for part in needed))
    last = Window.partitionBy("k").orderBy("s").rangeBetween(1 - length, 0)
    whole = parts.select("k", "s", *(_PARTS[part][1](part).over(last).alias(part) for part in needed))
    return whole.select("k", "s", *(BY_HAND[name][1]().alias(name) for name in names))


def _total(expression: str) -> tuple[_Column, Callable[[str], Column]]:
    return lambda: F.sum(F.expr(expression)), F.sum


def _same(function: Callable[[str], Column], column: str) -> tuple[_Column, Callable[[str], Column]]:
    return lambda: function(column), function


def _outermost(function: Callable[..., Column], *columns: str) -> tuple[_Column, Callable[[str], Column]]:
    return lambda: function(F.struct(*columns)), function


#: What is kept of a second, and how it is put together.
_PARTS: dict[str, tuple[_Column, Callable[[str], Column]]] = {
    "n": _total("1"),
    **{name: _total(" * ".join(name)) for name in ("x", "xx", "xxx", "xxxx", "y", "yy", "xy")},
    "logarithms": _total("ln(x)"),
    "met": _total("cast(b as int)"),
    "product": _same(F.product, "x"),
    "least": _same(F.min, "x"),
    "most": _same(F.max, "x"),
    "every": _same(F.bool_and, "b"),
    "some": _same(F.bool_or, "b"),
    **{name: _same(getattr(F, name), "v") for name in ("bit_and", "bit_or", "bit_xor")},
    "first": _outermost(F.min, "ts", "x"),
    "last": _outermost(F.max, "ts", "x"),
    "at least": _outermost(F.min, "y", "x"),
    "at most": _outermost(F.max, "y", "x"),
    "lowest": _outermost(F.min, "x", "ts"),
    "highest": _outermost(F.max, "x", "ts"),
}


def _squares(one: str, other: str) -> Column:
    """The sum of products of deviations from means."""
    both = "".join(sorted((one, other)))
    return F.col(both) - F.col(one) * F.col(other) / F.col("n")


def _power(k: int) -> Column:
    """The k-th central moment of x."""
    n, mean = F.col("n"), F.col("x") / F.col("n")
    if k == 2:
        return F.col("xx") / n - mean * mean
    if k == 3:
        return F.col("xxx") / n - 3 * mean * F.col("xx") / n + 2 * mean * mean * mean
    return F.col("xxxx") / n - 4 * mean * F.col("xxx") / n + 6 * mean * mean * F.col("xx") / n - 3 * mean**4


def _slope() -> Column:
    return F.try_divide(_squares("x", "y"), _squares("y", "y"))


def _corr() -> Column:
    return F.try_divide(_squares("x", "y"), F.sqrt(_squares("x", "x")) * F.sqrt(_squares("y", "y")))


def _fewer() -> Column:
    return F.nullif(F.col("n") - 1, F.lit(0))


def _fields(**fields: str) -> Column:
    return F.struct(*(F.col(path).alias(name) for name, path in fields.items()))


_ONE, _TWO = ("n", "x", "xx"), ("n", "x", "y", "xx", "yy", "xy")
#: The parts and the formula of each aggregate that can be said so.
BY_HAND: dict[str, tuple[Sequence[str], _Column]] = {
    "count": (("n",), lambda: F.col("n")),
    **dict.fromkeys(("sum", "try_sum"), (("x",), lambda: F.col("x"))),
    **dict.fromkeys(("avg", "try_avg"), (("n", "x"), lambda: F.col("x") / F.col("n"))),
    "var_pop": (_ONE, lambda: _squares("x", "x") / F.col("n")),
    "stddev_pop": (_ONE, lambda: F.sqrt(_squares("x", "x") / F.col("n"))),
    "variance": (_ONE, lambda: _squares("x", "x") / _fewer()),
    "stddev": (_ONE, lambda: F.sqrt(_squares("x", "x") / _fewer())),
    "skewness": ((*_ONE, "xxx"), lambda: F.try_divide(_power(3), F.pow(_power(2), F.lit(1.5)))),
    "kurtosis": ((*_ONE, "xxx", "xxxx"), lambda: F.try_divide(_power(4), F.pow(_power(2), F.lit(2.0))) - 3),
    "covar_pop": (("n", "x", "y", "xy"), lambda: _squares("x", "y") / F.col("n")),
    "covar_samp": (("n", "x", "y", "xy"), lambda: _squares("x", "y") / _fewer()),
    "corr": (_TWO, _corr),
    "regr_count": (("n",), lambda: F.col("n")),
    "regr_avgx": (("n", "y"), lambda: F.col("y") / F.col("n")),
    "regr_avgy": (("n", "x"), lambda: F.col("x") / F.col("n")),
    "regr_sxx": (("n", "y", "yy"), lambda: _squares("y", "y")),
    "regr_syy": (_ONE, lambda: _squares("x", "x")),
    "regr_sxy": (("n", "x", "y", "xy"), lambda: _squares("x", "y")),
    "regr_slope": (("n", "x", "y", "yy", "xy"), _slope),
    "regr_intercept": (("n", "x", "y", "yy", "xy"), lambda: (F.col("x") - _slope() * F.col("y")) / F.col("n")),
    "regr_r2": (_TWO, lambda: _corr() * _corr()),
    "weighted_avg": (("xy", "y"), lambda: F.try_divide(F.col("xy"), F.col("y"))),
    "geometric_mean": (("n", "logarithms"), lambda: F.exp(F.col("logarithms") / F.col("n"))),
    "product": (("product",), lambda: F.col("product")),
    "count_if": (("met",), lambda: F.col("met")),
    "min": (("least",), lambda: F.col("least")),
    "max": (("most",), lambda: F.col("most")),
    "range_": (("least", "most"), lambda: F.col("most") - F.col("least")),
    "bool_and": (("every",), lambda: F.col("every")),
    "bool_or": (("some",), lambda: F.col("some")),
    **{name: ((name,), lambda name=name: F.col(name)) for name in ("bit_and", "bit_or", "bit_xor")},
    **dict.fromkeys(("first", "any_value"), (("first",), lambda: F.col("first.x"))),
    "last": (("last",), lambda: F.col("last.x")),
    "min_by": (("at least",), lambda: F.col("`at least`.x")),
    "max_by": (("at most",), lambda: F.col("`at most`.x")),
    "ohlc": (
        ("first", "most", "least", "last"),
        lambda: _fields(open="first.x", high="most", low="least", close="last.x"),
    ),
    "m4": (
        ("first", "last", "lowest", "highest"),
        lambda: _fields(
            first="first.x",
            last="last.x",
            min="lowest.x",
            max="highest.x",
            first_time="first.ts",
            last_time="last.ts",
            min_time="lowest.ts",
            max_time="highest.ts",
        ),
    ),
}
