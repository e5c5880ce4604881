"""What does state take?  Bytes per slice, per key and per stored row, counted and checked against the process.

    python benchmarks/memory.py [--save FILE]

Every case runs in a process of its own, which feeds an operator, frees what it fed, and compares ``op.stats().bytes``
with how much the resident memory has grown. Beside it stands what the formulas of general stream slicing's Table 1
come to: slices with their aggregates, a tree of them where the store is eager, and tuples where they are stored. The
paper does not count what was reported and may still be corrected, nor what a holistic aggregate keeps of each value; we
do.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import multiprocessing
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import _harness as harness
import numpy as np
import pyarrow as pa

import slicewise as sw

PAGE = os.sysconf("SC_PAGE_SIZE")
#: What is kept of every slice besides partials: key, first, last, rows, unreported rows, closed gaps.
SLICE_COLUMNS = 6


def resident() -> int:
    """Bytes of this process in memory, without what the allocator keeps for later."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * PAGE


def rows_of(keys: int, each: int, step: int) -> Iterator[dict[str, np.ndarray]]:
    """Batches of one row per key, ``step`` apart; the last of them moved a little out of order."""
    key = np.arange(keys)
    for i in range(each):
        yield {"t": np.full(keys, i * step, np.int64), "k": key, "v": key + i}


def workload(**settings: Any) -> sw.Workload:
    return sw.Workload(time="t", keys=["k"], **settings)


#: Name -> workload, how far apart rows are, and how many of each key.
CASES: dict[str, tuple[Callable[[], sw.Workload], int, int]] = {
    "time, sum": (lambda: workload().query("q", sw.sliding(100, every=1), s=sw.sum("v")), 1, 100),
    "time, sum + avg + stddev": (
        lambda: workload().query("q", sw.sliding(100, every=1), s=sw.sum("v"), a=sw.avg("v"), d=sw.stddev("v")),
        1,
        100,
    ),
    "time, max (eager)": (lambda: workload().query("q", sw.sliding(100, every=1), m=sw.max("v")), 1, 100),
    "session, sum": (lambda: workload(lateness=1000).query("q", sw.session(5), s=sw.sum("v")), 10, 50),
    "count, sum, in order": (lambda: workload().query("q", sw.tumbling(sw.rows(1000)), s=sw.sum("v")), 1, 100),
    "count, sum, late rows": (
        lambda: workload(lateness=1000).query("q", sw.tumbling(sw.rows(10)), s=sw.sum("v")),
        1,
        100,
    ),
    "time, median": (lambda: workload().query("q", sw.sliding(100, every=10), m=sw.median("v")), 1, 100),
}


def measure(name: str, keys: int, connection: Any) -> None:
    """Run one case, and send what it holds."""
    make, step, each = CASES[name]
    warm_up = make().operator(ordered="in order" in name)
    for batch in rows_of(10, 3, step):
        warm_up.process_batch(batch)
    warm_up.close()
    op = make().operator(ordered="in order" in name)
    before = resident()
    for batch in rows_of(keys, each, step):
        op.process_batch(batch)
        if "in order" not in name:
            op.advance(int(batch["t"][0]))
    del batch
    grown = resident() - before
    stats = op.stats()
    labels = {label: d.itemsize for m in op.plan.monoids for label, d in zip(m.labels, m.dtypes, strict=True)}
    parts = sum(labels.values())
    connection.send((stats.keys, stats.slices, stats.tuples, stats.bytes, grown, parts, _tree(op), _row(op)))
    connection.close()


def _tree(op: sw.Operator) -> int:
    """The bytes of partials in the inner nodes of trees, per slice."""
    eager = [c for c in op.plan.components if c.store.choice == "eager"]
    return sum(d.itemsize for c in eager for d in c.monoid.dtypes)


def _row(op: sw.Operator) -> int:
    """The bytes of a stored row: its key, time, arrival and the columns that are read."""
    return 8 * (3 + len(op.workload.columns))


def run(name: str, keys: int) -> dict[str, Any]:
    """One case in a fresh process."""
    here, there = multiprocessing.get_context("spawn").Pipe()
    child = multiprocessing.get_context("spawn").Process(target=measure, args=(name, keys, there))
    child.start()
    held, slices, tuples, counted, grown, parts, tree, row = here.recv()
    child.join()
    formula = slices * (8 * SLICE_COLUMNS + parts) + slices * tree + tuples * row
    return {
        "case": name,
        "keys": held,
        "slices": slices,
        "tuples": tuples,
        "bytes": counted,
        "resident": grown,
        "table 1": formula,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    print(harness.heading())
    print(
        f"{'case':<26} {'keys':>7} {'slices':>9} {'rows':>9} {'counted MB':>10} {'RSS MB':>8} {'Table 1 MB':>10}"
        f" {'B/slice':>8} {'B/key':>8} {'B/row':>7}"
    )
    found = []
    for name in CASES:
        r = run(name, options.keys)
        found.append(r)
        per = [r["bytes"] / r[of] if r[of] else float("nan") for of in ("slices", "keys", "tuples")]
        print(
            f"{name:<26} {r['keys']:>7} {r['slices']:>9} {r['tuples']:>9} {r['bytes'] / 1e6:>10.1f}"
            f" {r['resident'] / 1e6:>8.1f} {r['table 1'] / 1e6:>10.1f} {per[0]:>8.0f} {per[1]:>8.0f} {per[2]:>7.0f}",
            flush=True,
        )
    harness.save(options.save, found)


if __name__ == "__main__":
    main()
