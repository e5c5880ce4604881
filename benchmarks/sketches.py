"""Sketches: are estimates within their stated error, however the values were cut into slices?

    python benchmarks/sketches.py --seeds 100        make sketches

For each seed a million values, cut at random places into 1, 60 and 1000 slices, whose partials are merged in groups and
then together: the relative error of distinct counts, the error in rank of percentiles, the error of counts of frequent
values. Prints the largest and the typical error beside the stated one, and fails if more estimates are outside of it
than it allows, or if a theta sketch is another one when the same values are cut otherwise. Seeds are shared out to
processes; a hundred take about five minutes on two cores.
"""

from __future__ import annotations

import math
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
from _harness import arguments, save

import slicewise as sw
from slicewise.columns import Column

CUTS = (1, 60, 1000)
SHARES = (0.01, 0.5, 0.99)
#: The errors that are stated: relative ones of distinct counts, those in rank, and those of counts as a share of rows.
RSD, ACCURACY, RANK_ERROR, TOO_LARGE = (0.01, 0.05), (100, 1000), 0.0133, 3.5 / 1024


def lowered(aggregate: sw.Aggregate, values: np.ndarray, starts: np.ndarray) -> Any:
    """The answer over all values, from the partials of slices that begin at these places."""
    monoid = aggregate.bind(pa.int64())
    parts = monoid.lift_fold([Column.of(values)], np.arange(len(values)), starts)
    groups = np.arange(0, len(starts), math.isqrt(len(starts)))
    return monoid.lower(monoid.fold(monoid.fold(parts, groups), np.zeros(1, np.int64))).to_pylist()[0]


def random_starts(rng: np.random.Generator, n: int, cuts: int) -> np.ndarray:
    """Where so many slices of n values begin."""
    return np.append(0, np.sort(rng.choice(np.arange(1, n), cuts - 1, replace=False)))


def errors(seed: int, n: int) -> dict[str, list[float]]:
    """The errors of one seed, as shares of what is stated; a share of 1 is at the bound."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, n // 3, n)
    skewed = rng.zipf(1.3, n) % n
    found: dict[str, list[float]] = {}
    thetas = set()
    for cuts in CUTS:
        starts = random_starts(rng, n, cuts)
        theta = lowered(sw.theta_sketch_agg("v"), values, starts)
        thetas.add(theta)
        for name, error in (
            *distinct_errors(values, starts, theta),
            *rank_errors(values, starts),
            *frequency_errors(skewed, starts),
        ):
            found.setdefault(name, []).append(error)
    if len(thetas) != 1:
        raise SystemExit(f"seed {seed}: the theta sketch depends on how the values were cut")
    return found


def distinct_errors(values: np.ndarray, starts: np.ndarray, theta: bytes) -> list[tuple[str, float]]:
    """How far estimates of the number of different values are off."""
    distinct = len(np.unique(values))
    hll = lowered(sw.hll_sketch_agg("v"), values, starts)
    estimates = {
        f"approx_count_distinct(rsd={rsd})": (lowered(sw.approx_count_distinct("v", rsd), values, starts), rsd)
        for rsd in RSD
    }
    estimates["hll_sketch_agg(12)"] = datasketches.hll_sketch.deserialize(hll).get_estimate(), 1.04 / math.sqrt(2**12)
    compact = datasketches.compact_theta_sketch.deserialize(theta)
    estimates["theta_sketch_agg(12)"] = compact.get_estimate(), 1 / math.sqrt(2**12)
    return [(name, abs(estimate / distinct - 1) / stated) for name, (estimate, stated) in estimates.items()]


def rank_errors(values: np.ndarray, starts: np.ndarray) -> list[tuple[str, float]]:
    """How far the ranks of estimated percentiles are off."""
    ordered = np.sort(values)
    estimates = {
        f"approx_percentile(accuracy={a})": (lowered(sw.approx_percentile("v", SHARES, a), values, starts), 1 / a)
        for a in ACCURACY
    }
    kll = datasketches.kll_doubles_sketch.deserialize(lowered(sw.kll_sketch_agg_double("v"), values, starts))
    estimates["kll_sketch_agg_double(200)"] = kll.get_quantiles(list(SHARES), True), RANK_ERROR
    found = []
    for name, (answers, stated) in estimates.items():
        low, high = (np.searchsorted(ordered, answers, side) / len(values) for side in ("left", "right"))
        off = np.maximum(np.maximum(low - SHARES, SHARES - high), 0.0) / stated
        found += [(name, error) for error in off.tolist()]
    return found


def frequency_errors(values: np.ndarray, starts: np.ndarray) -> list[tuple[str, float]]:
    """How far counts of frequent values are off: too large by so much, and never too small."""
    counts = np.bincount(values)
    top = lowered(sw.approx_most_frequent("v", 10), values, starts)
    over = [(item["count"] - counts[item["value"]]) / (TOO_LARGE * len(values)) for item in top]
    return [("approx_most_frequent(10)", math.inf if min(over) < 0 else max(over))]


#: How often an error may be larger than stated, by name: one of three for a standard deviation, one of a hundred for a
#: rank error, never for a bound. With some room for chance.
ALLOWED = {
    "approx_count_distinct": 0.40,
    "hll_sketch_agg": 0.40,
    "theta_sketch_agg": 0.40,
    "approx_percentile": 0.03,
    "kll_sketch_agg_double": 0.03,
    "approx_most_frequent": 0,
}


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    found: dict[str, list[float]] = {}
    with ProcessPoolExecutor(options.processes) as pool:
        for errors_of_seed in pool.map(partial(errors, n=options.rows), range(options.seeds)):
            for name, some in errors_of_seed.items():
                found.setdefault(name, []).extend(some)
    print(f"{options.seeds} seeds, {options.rows} values each, cut into {', '.join(map(str, CUTS))} slices")
    print(f"{'error as a share of the stated one':<40} {'median':>8} {'99%':>8} {'largest':>8} {'outside':>8}")
    failed = False
    for name, some in found.items():
        outside = float(np.mean(np.array(some) > 1 + 1e-9))
        middle, high = np.percentile(some, [50, 99])
        too_often = outside > ALLOWED[name.partition("(")[0]]
        verdict = "MORE THAN STATED" if too_often else "as stated"
        print(f"{name:<40} {middle:>8.2f} {high:>8.2f} {max(some):>8.2f} {outside:>8.1%}  {verdict}")
        failed |= too_often
    print("theta sketches are the same however the values were cut")
    save(options.save, found)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
