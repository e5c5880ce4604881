"""The operations that the papers name, by our names: over every aggregator that takes them, and in windows.

Table 1 of the Reactive Aggregator, SlickDeque's lists of invertible and other operations, and the monoids of Table 2 of
the MTA paper. What is right is the definition over the rows of a window, which knows no partials.
"""

from __future__ import annotations

import math
import random

import pytest

import slicewise as sw
from slicewise.errors import AggregateError
from slicewise.same import is_same
from slicewise.swag import ALGORITHMS
from slicewise.testing import value_of
from tests.aggregates.over import bare, few_rows, make

SIZE = 8


def numbers(rng):
    return rng.randrange(-20, 20)


def positive(rng):
    return rng.randrange(1, 20)


def words(rng):
    return "".join(rng.choices("abc", k=3))


def cosine(rng):
    x = rng.uniform(-9, 9)
    return x, math.cos(x)


def square(rng):
    x = rng.randrange(-9, 9)
    return x, x * x


OPERATIONS = {
    "Count": (sw.count, numbers),
    "Sum": (sw.sum, numbers),
    "Max": (sw.max, numbers),
    "Min": (sw.min, numbers),
    "ArithmeticMean": (sw.avg, numbers),
    "GeometricMean": (sw.geometric_mean, positive),
    "MaxCount": (sw.max_count, numbers),
    "MinCount": (sw.min_count, numbers),
    "SampleStdDev": (sw.stddev, numbers),
    "PopulationStdDev": (sw.stddev_pop, numbers),
    "Collect": (sw.collect_list, numbers),
    "Product": (sw.product, positive),
    "Range": (sw.range_, numbers),
    "Alphabetical Max": (sw.max, words),
    "ArgMax of Cosine": (sw.max_by, cosine),
    "ArgMin of x^2": (sw.min_by, square),
    "LIS": (sw.longest_rise, numbers),
}
#: SlickDeque's invertible operations, and some that are not: it must take all of both.
INVERTIBLE = ["Sum", "Product", "Count", "ArithmeticMean", "SampleStdDev"]
PICKED = ["Max", "Min", "Range", "Alphabetical Max", "ArgMax of Cosine", "ArgMin of x^2"]


def values_of(name, n=40):
    rng = random.Random(name)
    return [OPERATIONS[name][1](rng) for _ in range(n)]


def rows_of(values):
    return [dict(zip("vw", v if isinstance(v, tuple) else (v,), strict=False)) for v in values]


def on_columns(name):
    return OPERATIONS[name][0](*("vw" if isinstance(values_of(name, 1)[0], tuple) else "v"))


def defined(name, values):
    return value_of(on_columns(name), rows_of(values), range(len(values)))


@pytest.mark.parametrize("name", OPERATIONS)
def test_over_every_aggregator(name):
    ran = 0
    for cls in ALGORITHMS.values():
        try:
            window = cls(on_columns(name) if isinstance(values_of(name, 1)[0], tuple) else OPERATIONS[name][0]())
        except AggregateError:
            continue
        values = values_of(name)
        for i, value in enumerate(values):
            if len(window) == SIZE:
                window.evict()
            window.insert(value)
            held = values[max(i + 1 - SIZE, 0) : i + 1]
            expected = defined(name, held)
            assert is_same(window.query(), expected, 1e6), (cls.__name__, held)
        ran += 1
    assert ran >= len(ALGORITHMS) - 2


@pytest.mark.parametrize("name", [*INVERTIBLE, *PICKED])
def test_slickdeque_takes_what_its_paper_lists(name):
    assert ALGORITHMS["SlickDeque"](on_columns(name)).query() == defined(name, [])


@pytest.mark.parametrize("name", OPERATIONS)
def test_in_windows(name):
    values = values_of(name)
    workload = sw.Workload("t").query("rows", sw.sliding(sw.rows(SIZE), every=sw.rows(1)), x=on_columns(name))
    op = workload.query("time", sw.sliding(SIZE, every=4), x=on_columns(name)).operator()
    op.process_batch(
        {"t": list(range(len(values))), **{c: [r[c] for r in rows_of(values)] for c in rows_of(values)[0]}}
    )
    results = op.close()
    assert len(results) > len(values)
    for r in results:
        start = max(r.start, 0)
        expected = value_of(on_columns(name), rows_of(values[start : r.end]), range(start, min(r.end, len(values))))
        assert is_same(r.values["x"], expected, 1e6), (r.query, r.start)


def test_operations_of_a_computed_column():
    """As SlickDeque names them: ArgMax of Cosine, ArgMin of x^2, and the sum of squares behind deviations."""
    computed = {
        "cosine": sw.max_by("x", sw.expr("cos(x)")),
        "square": sw.min_by("x", sw.expr("pow(x, 2)")),
        "squares": sw.sum(sw.expr("x * x")),
    }
    rng = random.Random(3)
    xs = [round(rng.uniform(-9, 9), 3) for _ in range(30)]
    workload = sw.Workload("t").query("q", sw.sliding(sw.rows(SIZE), every=sw.rows(1)), **computed)
    op = workload.operator()
    op.process_batch({"t": list(range(len(xs))), "x": xs})
    for r in op.close():
        held = xs[r.start : r.end]
        assert r.values["cosine"] == max(held, key=math.cos)
        assert r.values["square"] == min(held, key=lambda x: x * x)
        assert r.values["squares"] == pytest.approx(sum(x * x for x in held))
    timed = sw.Workload("ts").query("q", sw.tumbling("1 second"), x=computed["cosine"])
    assert "rows    Java and NumPy may differ in the last digit of cos" in timed.explain()


@pytest.mark.parametrize("name", sw.AGGREGATES)
def test_every_aggregate_of_the_registry_slides(name):
    """Not only those of the papers: what refuses none gives what is folded anew."""
    two, draw = len(make(name).columns) == 2, random.Random(name)
    rows = [draw.choice([few_rows(name)[0], few_rows(name)[2]]) for _ in range(20)]
    aggregate = make(name) if two else bare(name)
    for cls in (ALGORITHMS[algorithm] for algorithm in ("TwoStacks", "DABA", "FlatFAT", "FlatFIT")):
        window, naive = cls(aggregate), ALGORITHMS["Naive"](aggregate)
        for row in rows:
            for one in (window, naive):
                if len(one) == 6:
                    one.evict()
                one.insert(row if two else row[0])
            assert is_same(content(window.query()), content(naive.query()), 100), cls.__name__


def content(value):
    """What a value holds; the bytes of a sketch list the same in whatever order they were merged."""
    return sorted(value) if isinstance(value, bytes) else value
