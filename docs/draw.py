"""Draw the pictures of the documentation from real results: ``python docs/draw.py`` writes ``docs/pictures``.

The rows are those of ``docs/windows.md``: an hour of a delivery van.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.dates as dates
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

import slicewise as sw
from slicewise.plot import timeline
from slicewise.slicing.rows.context_edges import ContextEdges

HERE = Path(__file__).parent
NINE = datetime(2024, 5, 1, 9)
MINUTES = [0, 2, 4, 6, 8, 9, 20, 22, 23, 25, 27, 36, 38]
VAN = {
    "at": [NINE + timedelta(minutes=m) for m in MINUTES],
    "km": [0.0, 1.0, 2.5, 4.5, 6.8, 7.5, 7.5, 8.5, 9.5, 12.0, 13.5, 13.5, 14.4],
    "speed": [30, 40, 62, 70, 55, 20, 25, 45, 66, 71, 30, 20, 50],
    "kind": ["start", "", "", "", "", "stop", "start", "", "", "", "stop", "start", ""],
}


MINUTE = 60_000_000


class BeforeStops:
    """The ten minutes before each stop."""

    def notify_context(self, time: int, row: dict[str, str], edges: ContextEdges) -> None:
        """Places the edges when the van has stopped."""
        if row["kind"] == "stop":
            edges.add_start(time - 10 * MINUTE)
            edges.add_end(time)


class Session:
    """A session by hand: rows at most five minutes apart."""

    def notify_context(self, time: int, row: dict[str, str], edges: ContextEdges) -> None:
        """Moves the end of the session, or starts another."""
        if edges.ends and time <= edges.ends[-1]:
            edges.remove_end(edges.ends[-1])
        else:
            edges.add_start(time)
        edges.add_end(time + 5 * MINUTE)


#: Windows from tables, in minutes after nine.
SHIFTS, NESTED = [(0, 8), (8, 25), (25, 35)], [(1, 24), (5, 9)]
#: A picture for each kind of window, with a lane for each of its variants.
PICTURES = {
    "tumbling": {
        "10 minutes": sw.tumbling("10 minutes"),
        "and an offset of 5": sw.tumbling("10 minutes", offset="5 minutes"),
    },
    "sliding": {
        "10 every 5": sw.sliding("10 minutes", every="5 minutes"),
        "5 every 10": sw.sliding("5 minutes", every="10 minutes"),
    },
    "cumulative": {"20 every 5": sw.cumulative("20 minutes", every="5 minutes")},
    "landmark": {"every 10, since 9": sw.landmark(every="10 minutes", since=NINE)},
    "between": {"9:05 to 9:25": sw.between(NINE + timedelta(minutes=5), NINE + timedelta(minutes=25))},
    "tables": {
        "of a table": sw.edges([(NINE + timedelta(minutes=a), NINE + timedelta(minutes=b)) for a, b in SHIFTS]),
        "that overlap": sw.edges([(NINE + timedelta(minutes=a), NINE + timedelta(minutes=b)) for a, b in NESTED]),
    },
    "trailing": {"the 5 minutes before": sw.trailing("5 minutes")},
    "session": {"gap of 5": sw.session("5 minutes"), "gap of 10": sw.session("10 minutes")},
    "rows": {"5 rows": sw.tumbling(sw.rows(5)), "5 rows every 2": sw.sliding(sw.rows(5), every=sw.rows(2))},
    "mixed": {
        "3 rows every 10 min": sw.sliding(sw.rows(3), every="10 minutes"),
        "10 min every 4 rows": sw.sliding("10 minutes", every=sw.rows(4)),
    },
    "units": {
        "5 km": sw.tumbling(sw.units(5, "km")),
        "5 km every 2.5": sw.sliding(sw.units(5, "km"), every=sw.units(2.5, "km")),
    },
    "punctuated": {"kind = 'start'": sw.punctuated("kind = 'start'")},
    "frames": {"speed > 50": sw.frames("speed > 50"), "at least 3 rows": sw.frames("speed > 50", min_rows=3)},
    "edges": {
        "10 min before stops": sw.user_defined(BeforeStops, columns=["kind"]),
        "session by hand": sw.user_defined(Session),
    },
}


def draw(name: str, lanes: dict[str, sw.windows.Window]) -> None:
    """One picture: the rows as dots on top, below them the windows of each lane."""
    workload = sw.Workload(time="at")
    for label, window in lanes.items():
        workload = workload.query(label, window, n=sw.count())
    op = workload.operator()
    op.process_batch(VAN)
    show(op.close(), list(lanes), VAN["at"], name)


def markers() -> None:
    """Windows between rows that are only punctuation, drawn hollow, and what does not see them."""
    lanes = {"start to stop": sw.punctuated("kind = 'start'", "kind = 'stop'"), "3 rows": sw.tumbling(sw.rows(3))}
    workload = sw.Workload(time="at", punctuation="kind in ('start', 'stop')")
    for label, window in lanes.items():
        workload = workload.query(label, window, n=sw.count())
    op = workload.operator()
    op.process_batch(VAN)
    both = list(zip(VAN["at"], VAN["kind"], strict=True))
    data, marked = [at for at, kind in both if not kind], [at for at, kind in both if kind]
    show(op.close(), list(lanes), data, "markers", marked, whole=True)


def late() -> None:
    """Two sessions that a late row joins, and an hour that it corrects: the example of ``docs/late-data.md``."""
    workload = (
        sw.Workload(time="at", lateness="2 hours")
        .query("per hour", sw.tumbling("1 hour"), n=sw.count())
        .query("trip", sw.session("20 minutes"), n=sw.count())
    )
    op = workload.operator()
    rows, late_row = ([NINE + timedelta(minutes=m) for m in minutes] for minutes in ((5, 15, 50), (32,)))
    now = NINE + timedelta(minutes=75)
    op.process_batch({"at": rows})
    found = op.advance(now)
    op.process_batch({"at": late_row})
    show(found + op.advance(now), ["per hour", "trip"], rows, "late", late_row)


def slices() -> None:
    """Rows, the slices that they are cut into, and the windows that are runs of them: for ``docs/inside.md``."""
    workload = (
        sw.Workload(time="at")
        .query("10 minutes", sw.tumbling("10 minutes"), n=sw.count())
        .query("15 every 10", sw.sliding("15 minutes", every="10 minutes"), n=sw.count())
        .query("session, gap 5", sw.session("5 minutes"), n=sw.count())
    )
    op = workload.operator()
    op.process_batch(VAN)
    cut = op.slices()
    figure, ax = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
    timeline(op.close(), [q.name for q in workload.queries], ax=ax)
    bottom, _ = ax.get_ylim()
    ax.set_ylim(bottom, 1.5)
    first, last = (cut[name].to_numpy().astype("M8[us]") for name in ("first", "last"))
    margin = timedelta(minutes=0.35)
    for low, high, rows in zip(first.tolist(), last.tolist(), cut["rows"].to_pylist(), strict=True):
        ax.barh(0.6, high - low + 2 * margin, left=low - margin, height=0.42, color="#333333", alpha=0.75)
        ax.text(low + (high - low) / 2, 0.6, rows, color="white", ha="center", va="center", fontsize=8)
    edges = {at for name in ("start", "end") for at in cut[name].to_numpy().astype("M8[us]").tolist()}
    for edge in sorted(edges):
        ax.axvline(edge, color="#B22222", linewidth=0.8, linestyle=(0, (3, 3)), zorder=0)
    ax.plot(VAN["at"], [1.15] * len(VAN["at"]), "o", color="#333333", markersize=4)
    ax.set_yticks([1.15, 0.6, *ax.get_yticks()], ["rows", "slices", *(t.get_text() for t in ax.get_yticklabels())])
    ax.xaxis.set_major_locator(dates.MinuteLocator(byminute=range(0, 60, 10)))
    ax.xaxis.set_major_formatter(dates.DateFormatter("%H:%M"))
    ax.set_xlim(NINE - timedelta(minutes=6), NINE + timedelta(minutes=50))
    save(figure, "slices")


def features() -> None:
    """Payments, points at which somebody asks, and the windows of what was known then: for ``docs/features.md``."""
    paid, asked = ([NINE + timedelta(minutes=m) for m in minutes] for minutes in ((2, 9, 14, 31), (10, 17, 45)))
    figure, ax = plt.subplots(figsize=(7.2, 2.4), layout="constrained")
    lanes = {"trailing, 15 minutes": [(at - timedelta(minutes=15), at) for at in asked]}
    tens = [NINE + timedelta(minutes=(at - NINE).seconds // 600 * 10) for at in asked]
    lanes["tumbling, 10 minutes"] = [(end - timedelta(minutes=10), end) for end in tens]
    for lane, windows in enumerate(lanes.values(), 1):
        for nth, (start, end) in enumerate(windows):
            y = -lane - 0.22 * (nth - 1)
            ax.barh(y, end - start, left=start, height=0.18, color=f"C{lane - 1}", alpha=0.6)
            ax.plot([asked[nth]] * 2, [y, 0], color="#B22222", linewidth=0.8, linestyle=(0, (3, 3)), zorder=0)
    ax.plot(paid, [0.55] * len(paid), "o", color="#333333", markersize=5)
    ax.plot(asked, [0] * len(asked), "o", markerfacecolor="white", markeredgecolor="#B22222", markersize=6)
    ax.set_yticks([0.55, 0, -1, -2], ["payments", "points", *lanes])
    ax.xaxis.set_major_locator(dates.MinuteLocator(byminute=range(0, 60, 10)))
    ax.xaxis.set_major_formatter(dates.DateFormatter("%H:%M"))
    ax.set_xlim(NINE - timedelta(minutes=8), NINE + timedelta(minutes=50))
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    save(figure, "features")


def shapes() -> None:
    """Counts over two look-backs from minute to minute, and the rows that differ: for ``docs/shapes.md``."""
    paid = [2, 9, 14, 31]
    workload = sw.Workload("t", lateness=60)
    for minutes in (10, 30):
        workload = workload.query(f"last_{minutes}", sw.sliding(minutes, every=1), n=sw.count())
    every_tick, different = (workload.operator(shape="wide", emit=emit) for emit in ("complete", "differences"))
    figure, ax = plt.subplots(figsize=(7.2, 2.6), layout="constrained")
    for op in (every_tick, different):
        op.process_batch({"t": paid})
    rows, marked = list(every_tick.advance(50)), list(different.advance(50))
    ends = [0, *(r.end for r in rows)]
    for number, (name, shown) in enumerate({"last_10_n": "10 minutes", "last_30_n": "30 minutes"}.items()):
        counts = [0, *(r.values[name] for r in rows)]
        ax.step(ends, counts, where="post", color=f"C{number}", label=shown, linewidth=1.6)
    for r in marked:
        ax.axvline(r.end, color="#B22222", linewidth=0.7, linestyle=(0, (3, 3)), zorder=0)
    ax.plot([r.end for r in marked], [-0.45] * len(marked), "|", color="#B22222", markersize=9, label="rows")
    ax.plot(paid, [-0.9] * len(paid), "o", color="#333333", markersize=5, label="payments")
    ax.set_yticks(range(5))
    ax.set_xlabel("minute")
    ax.legend(loc="upper right", fontsize=8, framealpha=0.9)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    save(figure, "shapes")


def show(
    results: sw.Results,
    lanes: list[str],
    rows: list[datetime],
    name: str,
    apart: Sequence[datetime] = (),
    *,
    whole: bool = False,
) -> None:
    """Draw results under their rows, some of them ``apart`` from the others, and save the picture.

    The ``whole`` hour is the same in all pictures of the van.
    """
    figure, ax = plt.subplots(figsize=(7.2, 0.9 + 0.55 * len(lanes)), layout="constrained")
    timeline(results, lanes, ax=ax)
    bottom, top = ax.get_ylim()
    ax.set_ylim(bottom, top + 0.35)
    ax.plot(rows, [0.32] * len(rows), "o", color="#333333", markersize=4, clip_on=False)
    ax.plot(apart, [0.32] * len(apart), "o", markerfacecolor="white", markeredgecolor="#B22222", markersize=5)
    ax.set_yticks([0.32, *ax.get_yticks()], ["rows", *(label.get_text() for label in ax.get_yticklabels())])
    ax.xaxis.set_major_locator(dates.MinuteLocator(byminute=range(0, 60, 10)))
    ax.xaxis.set_major_formatter(dates.DateFormatter("%H:%M"))
    if whole or not apart:
        ax.set_xlim(NINE - timedelta(minutes=6), NINE + timedelta(minutes=50))
    save(figure, name)


def save(figure: Figure, name: str) -> None:
    """Write a picture."""
    path = HERE / "pictures" / f"{name}.png"
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    for name, lanes in PICTURES.items():
        draw(name, lanes)
    markers()
    late()
    slices()
    features()
    shapes()
