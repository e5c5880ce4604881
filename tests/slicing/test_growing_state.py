"""Partials that grow, in state: snapshots at every cut point, wider types, and how older versions kept them."""

from __future__ import annotations

import copy
import decimal

import numpy as np
import pyarrow as pa
import pytest

import slicewise as sw
from slicewise import plain
from slicewise.aggregates.base import Parts
from slicewise.slicing import FORMAT
from tests.matrices import first_quick
from tests.slicing.running import assert_same

D = decimal.Decimal
ROWS = [(t, "ab"[t % 2], [3, 1, None, 3, 7, 0, 3][t % 7], "xyz"[t % 3]) for t in range(40)]
INT = pa.int64()
WINDOW = sw.sliding(12, every=3)


def workload() -> sw.Workload:
    base = sw.Workload(time="t", keys=["k"], watermark=2, lateness=6)
    ranked = {"mid": sw.median("v"), "ends": sw.percentile("v", [0.1, 0.9]), "n": sw.count_distinct("v", "w")}
    counted = {"often": sw.most_frequent("v", 2), "mode": sw.mode("w"), "all": sw.histogram("v")}
    best = {"high": sw.largest("v", 2), "ends2": sw.last_k("w", 2), "top": sw.max_by("w", "v", 2)}
    return base.query("q", WINDOW, **ranked, **counted, **best).query("few", sw.tumbling(sw.rows(5)), **counted)


def columns(rows, type_=INT):
    names = zip("tkvw", zip(*rows, strict=True), strict=True)
    return {name: pa.array(values, type_) if name == "v" else list(values) for name, values in names}


def run(op, rows, type_=INT):
    results = []
    for at in range(0, len(rows), 5):
        results += op.process_batch(columns(rows[at : at + 5], type_))
        results += op.advance(rows[min(at + 4, len(rows) - 1)][0])
    return results


@pytest.mark.parametrize("cut", first_quick(range(0, len(ROWS), 5), n=3))
def test_a_snapshot_goes_on_at_every_cut(cut):
    types = {"k": pa.string(), "v": pa.int64(), "w": pa.string()}
    whole, first = workload().operator(types=types), workload().operator(types=types)
    expected = run(whole, ROWS) + list(whole.close())
    before = run(first, ROWS[:cut])
    again = workload().operator(types=types).restore(plain.load(plain.dump(first.snapshot())))
    assert_same([before + run(again, ROWS[cut:]) + list(again.close())], [expected])


@pytest.mark.parametrize("wide", [pa.decimal128(12, 4), pa.decimal128(30, 4)])
def test_decimals_may_grow(wide):
    rows = [(t, k, None if v is None else D(v) / 4, w) for t, k, v, w in ROWS]
    types = {"k": pa.string(), "w": pa.string()}
    whole = workload().operator(types={**types, "v": wide})
    expected = run(whole, rows, wide) + list(whole.close())
    narrow = pa.decimal128(10, 2)
    first = workload().operator(types={**types, "v": narrow})
    before = run(first, rows[:20], narrow)
    again = workload().operator(types={**types, "v": wide}).restore(plain.load(plain.dump(first.snapshot())))
    assert_same([before + run(again, rows[20:], wide) + list(again.close())], [expected])


def as_format_5(snapshot, type_):
    """A snapshot as it was before histograms were ragged: an array per slice, and aggregates by name."""
    old = copy.deepcopy(snapshot)
    old["format"] = 5
    layout = old["bound"]["layout"]
    del layout["labels"]
    layout["aggregates"] = ("median('v')",)
    slices = old["bound"]["engine"]["time"]["slices"]
    assert len(slices["parts"]) == 1
    slices["parts"] = [list(old_parts(slices["parts"][0][0], type_))]
    return old


def old_parts(ragged, type_) -> Parts:
    ends = np.cumsum(ragged["lengths"])
    values, counts = ragged["columns"]
    if pa.types.is_decimal(type_):
        values = np.array([v / 10**type_.scale for v in values.tolist()])
    out = np.empty(len(ends), object), np.empty(len(ends), object)
    for i, (end, n) in enumerate(zip(ends.tolist(), ragged["lengths"].tolist(), strict=True)):
        out[0][i], out[1][i] = values[end - n : end], counts[end - n : end]
    return out


@pytest.mark.parametrize(
    ("type_", "wide"),
    [
        (pa.int64(), pa.int64()),
        (pa.float64(), pa.float64()),
        (pa.decimal128(10, 2), pa.decimal128(10, 2)),
        (pa.decimal128(10, 2), pa.decimal128(14, 4)),
    ],
)
def test_medians_of_format_5_go_on(type_, wide):
    assert FORMAT > 5
    base = sw.Workload(time="t", keys=["k"], watermark=2, lateness=6).query("q", WINDOW, mid=sw.median("v"))
    rows = [(t, k, v if v is None or not pa.types.is_decimal(type_) else D(v) / 4, w) for t, k, v, w in ROWS]
    types = {"k": pa.string(), "v": type_}
    whole, first = base.operator(types=types), base.operator(types=types)
    expected = run(whole, rows, type_) + list(whole.close())
    before = run(first, rows[:20], type_)
    snapshot = plain.load(plain.dump(as_format_5(first.snapshot(), type_)))
    again = base.operator(types={**types, "v": wide}).restore(snapshot)
    assert_same([before + run(again, rows[20:], wide) + list(again.close())], [expected])
