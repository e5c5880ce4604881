"""Context-free windows by brute force: every window of a family near the origin, listed from its definition."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import strategies as st

import slicewise as sw
from slicewise.windows import Between, Cumulative, Landmark, ScheduledEdges, Sliding, TableEdges, Window

#: Times that tests ask about lie within this, windows that could matter to them within FAR.
NEAR, FAR = 60, 250


def windows_of(window: Window) -> list[tuple[int, int]]:
    """All windows of a family as (start, end), within FAR of the origin."""
    if isinstance(window, Sliding):
        every, length, offset = int(window.every.size), int(window.length.size), int(window.offset)
        return [(s, s + length) for s in range(offset - FAR * every, FAR * every, every) if abs(s) <= FAR]
    if isinstance(window, Cumulative):
        every, length, offset = int(window.every.size), int(window.length.size), int(window.offset)
        periods = range(offset - FAR * length, FAR * length, length)
        growing = range(every, length + 1, every)
        return [(p, p + grown) for p in periods for grown in growing if abs(p) <= FAR]
    if isinstance(window, Landmark):
        every, since = int(window.every.size), int(window.since)
        return [(since, end) for end in range(since + every, FAR, every)]
    if isinstance(window, TableEdges):
        return [(start, end) for start, end, _ in window.table.rows()]
    if isinstance(window, ScheduledEdges):
        return Hills().windows(-FAR, FAR)
    assert isinstance(window, Between)
    return [(int(window.start), int(window.end))]


class Hills:
    """A schedule: windows that get further apart and longer with the distance from the origin; some overlap."""

    def windows(self, after: int, upto: int) -> list[tuple[int, int]]:
        starts = [n * abs(n) // 2 for n in range(-200, 200)]
        return [(s, s + 3 + abs(s) // 4) for s in dict.fromkeys(starts) if s < upto and s + 3 + abs(s) // 4 > after]

    def next_edge(self, t: int) -> int | None:
        bounds = {edge for window in self.windows(-20_000, 20_000) for edge in window}
        return min((edge for edge in bounds if edge > t), default=None)


def tables(keys: st.SearchStrategy[object] | None = None) -> st.SearchStrategy[Window]:
    """Windows from a table: in any order, apart, overlapping and inside each other; with a key column ``k``."""
    bounds = st.tuples(st.integers(-50, 55), st.integers(1, 40)).map(lambda both: (both[0], both[0] + both[1]))
    if keys is None:
        return st.lists(bounds, min_size=1, max_size=8, unique=True).map(sw.edges)
    rows = st.lists(st.tuples(bounds, keys), min_size=1, max_size=8, unique=True)
    return rows.map(
        lambda rows: sw.edges(
            {
                "start": [start for (start, _), _ in rows],
                "end": [end for (_, end), _ in rows],
                "k": pa.array([key for _, key in rows], pa.string()),
            }
        )
    )


def edges_of(windows: list[Window]) -> list[int]:
    """Where any window begins or ends."""
    return sorted({edge for w in windows for both in windows_of(w) for edge in both})


def step_of(window: Window, start: int, end: int) -> int:
    """Where the part of a window begins that must have brought rows for it to be reported."""
    return max(start, end - int(window.every.size)) if isinstance(window, Landmark) else start


def open_starts_of(windows: list[Window], horizon: int) -> list[int]:
    """The begins at or before the horizon that windows beyond it still need; of a landmark also its present step."""
    found = set()
    for window in windows:
        still_open = [(s, e) for s, e in windows_of(window) if e > horizon]
        found |= {s for s, _ in still_open}
        if isinstance(window, Landmark) and still_open:
            found.add(step_of(window, *min(still_open)))
    return sorted(s for s in found if s <= horizon)


def context_free(*, landmarks: bool = True) -> st.SearchStrategy[Window]:
    """One context-free window: slides shorter, equal and longer than lengths, offsets, negative times."""
    length, offset = st.integers(1, 20), st.integers(-9, 9)
    kinds = [
        st.builds(lambda n, o: sw.tumbling(n, offset=o), length, offset),
        st.builds(lambda n, e, o: sw.sliding(n, every=e, offset=o), length, length, offset),
        st.builds(
            lambda e, k, o: sw.cumulative(e * k, every=e, offset=o), st.integers(1, 6), st.integers(1, 4), offset
        ),
        st.builds(lambda s, n: sw.between(s, s + n), st.integers(-50, 40), length),
        tables(),
        st.builds(lambda: sw.edges(Hills())),
    ]
    if landmarks:
        kinds.append(st.builds(lambda e, s: sw.landmark(every=e, since=s), st.integers(1, 15), st.integers(-50, 50)))
    return st.one_of(kinds)


def mixes(*, landmarks: bool = True) -> st.SearchStrategy[list[Window]]:
    """Some context-free windows."""
    return st.lists(context_free(landmarks=landmarks), min_size=1, max_size=4, unique=True)
