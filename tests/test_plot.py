"""Pictures: what is drawn, counted and measured; not only that something is."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest

import slicewise as sw
from slicewise import plot
from slicewise.errors import DataError, SetupError

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

S = 1_000_000
DAY = 86_400 * S
NOON = 1_717_243_200 * S


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def corrected() -> sw.Results:
    """Sessions [0, 3) and [6, 8) of key a, joined by late rows; per second, one window corrected.

    t      0  1  .  3  4  .  6          late: 3, 4 and another 1
    """
    op = (
        sw.Workload(time="t", unit="microseconds", keys=["k"], lateness="1 minute")
        .query("per_second", sw.tumbling("1 second"), total=sw.sum("v"), n=sw.count())
        .query("visit", sw.session("2 seconds"), n=sw.count())
        .operator()
    )
    op.process_batch({"t": [NOON, NOON + S, NOON + 6 * S, NOON], "k": ["a", "a", "a", "b"], "v": [1.0, 2.0, 4.0, 9.0]})
    results = op.advance(NOON + 9 * S)
    for late in (1, 3, 4):
        op.process(NOON + late * S, {"k": "a", "v": 10.0})
    return results + op.advance(NOON + 9 * S) + op.close()


def bars(ax) -> dict[str, int]:
    """How many bars there are of each state."""
    counted: dict[str, int] = {}
    for collection in ax.collections:
        counted[collection.get_gid()] = counted.get(collection.get_gid(), 0) + len(collection.get_paths())
    return counted


def lines(ax) -> dict[str, tuple[list[float], list[float]]]:
    return {line.get_gid(): (line.get_xdata().tolist(), line.get_ydata().tolist()) for line in ax.get_lines()}


def seconds(days: list[float]) -> list[float]:
    return [round((d * DAY - NOON) / S, 3) for d in days]


# -- timeline


def test_timeline_draws_one_bar_per_window_and_marks_what_became_of_it():
    ax = plot.timeline(corrected(), queries=["visit"])
    # a: [0, 3) and [6, 8) withdrawn, [0, 8) in their place; b: [0, 2)
    assert bars(ax) == {"withdrawn": 2, "reported": 2}
    ax = plot.timeline(corrected(), queries=["per_second"])
    # a: seconds 0, 1 (corrected), 3, 4, 6; b: second 0
    assert bars(ax) == {"reported": 5, "corrected": 1}


def test_timeline_draws_bars_where_windows_lie():
    ax = plot.timeline(corrected(), queries=["visit"])
    withdrawn = next(c for c in ax.collections if c.get_gid() == "withdrawn")
    spans = sorted(tuple(seconds(path.vertices[[0, 2], 0].tolist())) for path in withdrawn.get_paths())
    assert spans == [(0.0, 3.0), (6.0, 8.0)]


def test_timeline_has_a_lane_per_query_in_the_order_asked_for():
    names = [label.get_text() for label in plot.timeline(corrected()).get_yticklabels()]
    assert sorted(names) == ["per_second", "visit"]
    ax = plot.timeline(corrected(), queries=["visit", "per_second"])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["visit", "per_second"]
    heights = ax.get_yticks()
    assert heights[0] > heights[1]


def test_timeline_explains_corrections_only_where_there_are_some():
    legend = plot.timeline(corrected()).get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["reported", "corrected", "withdrawn"]
    op = sw.Workload(time="t").query("q", sw.tumbling(10), n=sw.count()).operator()
    op.process_batch({"t": [1, 11]})
    ax = plot.timeline(op.close())
    assert ax.get_legend() is None
    assert bars(ax) == {"reported": 2}


def test_timeline_stacks_windows_that_overlap():
    op = sw.Workload(time="t").query("q", sw.sliding(30, every=10), n=sw.count()).operator()
    op.process_batch({"t": list(range(0, 100, 5))})
    ax = plot.timeline(op.close())
    boxes = [path.get_extents() for c in ax.collections for path in c.get_paths()]
    assert len({round(box.y0, 6) for box in boxes}) == 3  # length over slide
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            apart = one.x1 <= other.x0 or other.x1 <= one.x0 or one.y1 <= other.y0 or other.y1 <= one.y0
            assert apart


def test_timeline_names_keys_where_there_are_few():
    named = [text.get_text() for text in plot.timeline(corrected(), ["visit"]).texts if text.get_gid() == "key"]
    assert named == ["a", "b"]


def test_timeline_marks_windows_whose_end_never_came():
    op = sw.Workload(time="t").query("q", sw.punctuated("v > 5"), n=sw.count()).operator()
    op.process_batch({"t": [NOON, NOON + S, NOON + 2 * S], "v": [1, 9, 2]})
    ax = plot.timeline(op.close())
    assert bars(ax) == {"reported": 2}
    assert [line.get_gid() for line in ax.get_lines()] == ["open"]


def test_windows_on_rows_are_told_apart_by_their_span_when_late_rows_move_their_times():
    op = (
        sw.Workload(time="t", unit="microseconds", lateness="1 minute")
        .query("q", sw.sliding(sw.rows(2), every=sw.rows(1)), s=sw.sum("v"))
        .operator()
    )
    op.process_batch({"t": [0, S, 3 * S], "v": [1, 2, 4]})
    results = op.advance(5 * S)
    op.process(2 * S, {"v": 8})
    results = results + op.advance(5 * S) + op.close()
    assert bars(plot.timeline(results)) == {"reported": 2, "corrected": 1}
    assert lines(plot.series(results, "q"))[""][1] == [3.0, 10.0, 12.0]


def test_many_windows_are_drawn_quickly_enough_to_wait_for():
    op = sw.Workload(time="t").query("q", sw.tumbling(2), n=sw.count()).operator()
    op.process_batch({"t": np.arange(10_000)})
    assert bars(plot.timeline(op.close())) == {"reported": 5000}


# -- series


def test_series_draws_a_line_per_key_over_the_ends_of_windows_with_the_latest_truth():
    ax = plot.series(corrected(), "per_second", "total")
    found = lines(ax)
    assert sorted(found) == ["a", "b"]
    assert seconds(found["a"][0]) == [1, 2, 4, 5, 7]
    assert found["a"][1] == [1.0, 12.0, 10.0, 10.0, 4.0]
    assert found["b"][1] == [9.0]
    assert ax.get_title(loc="left") == "total of per_second"


def test_series_removes_what_was_withdrawn():
    found = lines(plot.series(corrected(), "visit", key="a"))
    assert list(found) == ["a"]
    assert (seconds(found["a"][0]), found["a"][1]) == ([8.0], [6.0])


def test_series_takes_the_first_column_that_can_be_drawn():
    op = sw.Workload(time="t").query("q", sw.tumbling(10), page=sw.first("p"), n=sw.count()).operator()
    op.process_batch({"t": [1, 12], "p": ["x", "y"]})
    results = op.close()
    assert plot.series(results, "q").get_title(loc="left") == "n of q"
    assert lines(plot.series(results, "q")) == {"": ([10.0, 20.0], [1.0, 1.0])}
    with pytest.raises(DataError, match="'page' of query 'q' holds no numbers; got str; known: 'n'"):
        plot.series(results, "q", "page")


def test_series_leaves_out_windows_without_a_value():
    op = sw.Workload(time="t").query("q", sw.tumbling(10), s=sw.sum("v")).operator()
    op.process_batch({"t": [1, 12, 25], "v": pa.array([1, None, 3], pa.int64()).to_pylist()})
    assert lines(plot.series(op.close(), "q")) == {"": ([10.0, 30.0], [1.0, 3.0])}


def test_series_draws_m4_as_its_four_points_in_time_order():
    workload = sw.Workload(time="t", unit="microseconds").query("chart", sw.tumbling("10 seconds"), shape=sw.m4("v"))
    op = workload.operator()
    times = [NOON + s * S for s in (0, 2, 5, 9, 10, 13, 16, 19)]
    op.process_batch({"t": times, "v": [5, 9, 1, 4, 3, 0, 8, 7]})
    x, y = lines(plot.series(op.close(), "chart"))[""]
    assert seconds(x) == [0, 2, 5, 9, 10, 13, 16, 19]
    assert y == [5, 9, 1, 4, 3, 0, 8, 7]


def test_series_of_m4_draws_the_line_of_all_rows():
    rng = np.random.default_rng(3)
    values = rng.normal(size=2000).cumsum()
    op = sw.Workload(time="t").query("chart", sw.tumbling(50), shape=sw.m4("v")).operator()
    op.process_batch({"t": np.arange(2000), "v": values})
    x, y = lines(plot.series(op.close(), "chart"))[""]
    assert len(x) == 4 * 40
    assert x == sorted(x)
    assert values[np.array(x).astype(int)].tolist() == y
    for start in range(0, 2000, 50):
        drawn = [v for t, v in zip(x, y, strict=True) if start <= t < start + 50]
        assert (min(drawn), max(drawn)) == (values[start : start + 50].min(), values[start : start + 50].max())


def test_series_names_lines_at_their_ends_or_in_a_legend():
    op = sw.Workload(time="t", keys=["k"]).query("q", sw.tumbling(10), s=sw.sum("v")).operator()
    op.process_batch({"t": [1, 1, 11, 11], "k": ["a", "b", "a", "b"], "v": [1, 5, 2, 9]})
    ax = plot.series(op.close(), "q")
    assert [text.get_text() for text in ax.texts] == ["a", "b"]
    assert ax.get_legend() is None
    op = sw.Workload(time="t", keys=["k"]).query("q", sw.tumbling(10), s=sw.sum("v")).operator()
    op.process_batch({"t": [1, 1, 11, 11], "k": ["a", "b", "a", "b"], "v": [1, 5, 9, 9]})
    ax = plot.series(op.close(), "q")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]


def test_series_of_many_keys_are_drawn_alike_and_counted():
    op = sw.Workload(time="t", keys=["k"]).query("q", sw.tumbling(10), n=sw.count()).operator()
    op.process_batch({"t": list(range(40)), "k": [n % 20 for n in range(40)]})
    ax = plot.series(op.close(), "q")
    assert len(ax.get_lines()) == 20
    assert len({line.get_color() for line in ax.get_lines()}) == 1
    assert ax.get_title(loc="right") == "20 keys"


def test_a_key_of_several_columns_is_a_tuple():
    op = sw.Workload(time="t", keys=["k", "l"]).query("q", sw.tumbling(10), n=sw.count()).operator()
    op.process_batch({"t": [1, 2, 3], "k": ["a", "a", "b"], "l": [1, 2, 1]})
    results = op.close()
    assert list(lines(plot.series(results, "q", key=("a", 2)))) == ["a, 2"]
    with pytest.raises(DataError, match="there are no results of key a, 3; known: a, 1, a, 2, b, 1"):
        plot.series(results, "q", key=("a", 3))


# -- bands


def drawn_bands(ax) -> list[list[float]]:
    return [seconds(patch.get_bbox().intervalx.tolist()) for patch in ax.patches]


def test_bands_are_the_windows_that_hold_in_the_end():
    ax = plot.series(corrected(), "per_second", key="a")
    assert plot.bands(corrected(), "visit", key="a", ax=ax) is ax
    # [0, 3) and [6, 8) were withdrawn.
    assert drawn_bands(ax) == [[0.0, 8.0]]
    assert drawn_bands(plot.bands(corrected(), "visit")) == [[0.0, 2.0], [0.0, 8.0]]
    assert [patch.get_label() for patch in plot.bands(corrected(), "visit").patches] == ["visit", "_"]


def test_windows_that_stayed_open_have_no_band():
    op = sw.Workload(time="t").query("q", sw.punctuated("v > 5"), n=sw.count()).operator()
    op.process_batch({"t": [1, 4, 6], "v": [1, 9, 2]})
    (band,) = plot.bands(op.close(), "q").patches
    assert (band.get_bbox().intervalx.tolist(), band.get_label()) == ([1.0, 4.0], "q")


def test_bands_of_an_unknown_query_or_key_are_refused():
    with pytest.raises(DataError, match=r"^there is no query 'vist' in the results; did you mean 'visit'\?$"):
        plot.bands(corrected(), "vist")
    with pytest.raises(DataError, match=r"^there are no results of key c; known: b, a$"):
        plot.bands(corrected(), "visit", key="c")


# -- what is taken


class SparkLike:
    """A stand-in for a DataFrame of Spark that can be collected to pandas only, where structs are rows."""

    def __init__(self, table):
        self._table = table

    def toPandas(self):
        class Row(tuple):
            def asDict(self):
                return dict(zip(("start", "end"), self, strict=True))

        frame = self._table.to_pandas()
        frame["window"] = [Row((w["start"], w["end"])) for w in frame["window"]]
        return frame


@pytest.mark.parametrize("kind", ["results", "arrow", "pandas", "spark by arrow", "spark by pandas", "time zone"])
def test_all_kinds_of_results_give_the_same_picture(kind):
    pytest.importorskip("pandas")
    results = corrected()
    table = results.to_arrow()
    if kind == "time zone":
        bounds = [table["window"].combine_chunks().field(i).cast(pa.timestamp("us", "UTC")) for i in (0, 1)]
        bounds = [b.cast(pa.timestamp("us", "Asia/Tokyo")) for b in bounds]
        window = pa.StructArray.from_arrays(bounds, names=["start", "end"])
        table = table.set_column(table.column_names.index("window"), "window", window)
    given = {
        "results": lambda: results,
        "arrow": lambda: table,
        "time zone": lambda: table,
        "pandas": lambda: table.to_pandas(),
        "spark by arrow": lambda: type("DataFrame", (), {"toArrow": lambda self: table})(),
        "spark by pandas": lambda: SparkLike(table),
    }[kind]()
    assert bars(plot.timeline(given)) == {"reported": 7, "corrected": 1, "withdrawn": 2}
    assert seconds(lines(plot.series(given, "per_second", "total"))["a"][0]) == [1, 2, 4, 5, 7]


def test_late_rows_that_were_collected_are_not_drawn():
    table = corrected().to_arrow()
    late = pa.table({"k": ["a"], "change": ["late"], "late": ["x"]})
    both = pa.concat_tables([table, late], promote_options="default")
    assert bars(plot.timeline(both)) == bars(plot.timeline(table))
    with pytest.raises(DataError, match="has no column 'late'"):
        plot.series(both, "per_second", "late")


def test_a_picture_is_drawn_where_it_is_asked_for():
    figure, (above, below) = plt.subplots(2)
    assert plot.timeline(corrected(), ax=above) is above
    assert plot.series(corrected(), "visit", ax=below) is below
    assert len(plt.get_fignums()) == 1
    figure.canvas.draw()


def test_times_are_dates_and_integers_are_integers():
    ax = plot.series(corrected(), "per_second")
    ax.figure.canvas.draw()
    assert ax.xaxis.get_major_formatter().get_offset().startswith("2024-Jun-01")
    op = sw.Workload(time="t").query("q", sw.tumbling(10), n=sw.count()).operator()
    op.process_batch({"t": [1, 12, 25]})
    ax = plot.series(op.close(), "q")
    ax.figure.canvas.draw()
    assert all(label.get_text().isdecimal() for label in ax.get_xticklabels())


# -- what is refused


def test_unknown_names_get_the_nearest():
    results = corrected()
    with pytest.raises(DataError, match="there is no query 'vist' in the results; did you mean 'visit'"):
        plot.series(results, "vist")
    with pytest.raises(DataError, match="there is no query 'vist' in the results; did you mean 'visit'"):
        plot.timeline(results, ["vist"])
    with pytest.raises(DataError, match="query 'per_second' has no column 'totl'; did you mean 'total'"):
        plot.series(results, "per_second", "totl")
    with pytest.raises(DataError, match="there are no results of key c; known: a, b"):
        plot.series(results, "per_second", key="c")
    with pytest.raises(
        DataError, match=r"`queries` must be a list of names; got the string 'visit'; write \['visit'\]"
    ):
        plot.timeline(results, "visit")


def test_a_query_without_numbers_cannot_be_drawn():
    op = sw.Workload(time="t").query("q", sw.tumbling(10), page=sw.first("p")).operator()
    op.process_batch({"t": [1], "p": ["x"]})
    with pytest.raises(DataError, match="query 'q' has no column that can be drawn; there must be numbers or m4"):
        plot.series(op.close(), "q")


def test_what_is_no_result_is_refused():
    with pytest.raises(DataError, match="these are not results of a workload; got int; pass Results, an Arrow table"):
        plot.timeline(3)
    with pytest.raises(DataError, match="these are not results of a workload: there is no column 'query'"):
        plot.timeline(pa.table({"x": [1]}))
    with pytest.raises(DataError, match="there are no results to draw; was the watermark advanced"):
        plot.timeline(sw.Results())
    with pytest.raises(DataError, match="there are no results to draw; was the watermark advanced"):
        plot.series(corrected().to_arrow().slice(0, 0), "visit")
    flat = corrected().to_arrow()
    flat = flat.set_column(flat.column_names.index("window"), "window", pa.array([1] * len(flat)))
    with pytest.raises(DataError, match="the column `window` must be a struct of start and end; got int64"):
        plot.timeline(flat)


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    for name in [n for n in sys.modules if n.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        SetupError, match=r"^pictures need matplotlib, which is not installed; pip install 'slicewise\[plot\]'$"
    ):
        plot.series(corrected(), "visit")
