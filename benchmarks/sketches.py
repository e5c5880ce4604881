"""Sketches: are estimates within their stated error, however the values were cut into slices?

    python benchmarks/sketches.py --seeds 100        make sketches

For each seed a million values, cut into 1, 60 and 1000 slices whose partials are merged: the relative error of distinct
counts, the error in rank of percentiles, the error of counts of frequent values. Prints the largest and the typical
error beside the stated one, and fails if more estimates are outside of it than it allows.
"""

from __future__ import annotations

import math
import sys

import datasketches
import numpy as np
import pyarrow as pa
from _harness import arguments, save

import slicewise as sw
from slicewise.columns import Column

CUTS = (1, 60, 1000)


def lowered(aggregate, values: np.ndarray, cuts: int):
    """The answer over all values, from the partials of so many slices."""
    monoid = aggregate.bind(pa.int64())
    starts = np.linspace(0, len(values), cuts, endpoint=False).astype(np.int64)
    parts = monoid.lift_fold([Column.of(values)], np.arange(len(values)), starts)
    return monoid.lower(monoid.fold(parts, np.zeros(1, np.int64))).to_pylist()[0]


def errors(seed: int, n: int) -> dict[str, list[float]]:
    """The errors of one seed, as shares of what is stated; a share of 1 is at the bound."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, n // 3, n)
    distinct = len(np.unique(values))
    ordered = np.sort(values)
    skewed = rng.zipf(1.3, n) % n
    counts = np.bincount(skewed)
    found: dict[str, list[float]] = {}
    thetas = set()
    for cuts in CUTS:
        for rsd in (0.01, 0.05):
            estimate = lowered(sw.approx_count_distinct("v", rsd), values, cuts)
            found.setdefault(f"approx_count_distinct(rsd={rsd})", []).append(abs(estimate / distinct - 1) / rsd)
        for accuracy in (100, 1000):
            for share in (0.01, 0.5, 0.99):
                value = lowered(sw.approx_percentile("v", share, accuracy), values, cuts)
                low, high = np.searchsorted(ordered, value) / n, np.searchsorted(ordered, value, "right") / n
                name = f"approx_percentile(accuracy={accuracy})"
                found.setdefault(name, []).append(max(low - share, share - high, 0.0) * accuracy)
        top = lowered(sw.approx_most_frequent("v", 10), skewed, cuts)
        over = [(item["count"] - counts[item["value"]]) / (3.5 / 1024 * n) for item in top]
        found.setdefault("approx_most_frequent(10)", []).append(max(max(over), -min(over)))
        sketch = lowered(sw.theta_sketch_agg("v"), values, cuts)
        thetas.add(sketch)
        estimate = datasketches.compact_theta_sketch.deserialize(sketch).get_estimate()
        found.setdefault("theta_sketch_agg(12)", []).append(abs(estimate / distinct - 1) * math.sqrt(2**12))
    if len(thetas) != 1:
        raise SystemExit(f"seed {seed}: the theta sketch depends on how the values were cut")
    return found


#: How often an error may be larger than stated, by name: one of three for a standard deviation, one of a hundred for a
#: rank error, never for a bound. With some room for chance.
ALLOWED = {
    "approx_count_distinct": 0.40,
    "theta_sketch_agg": 0.40,
    "approx_percentile": 0.03,
    "approx_most_frequent": 0,
}


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    found: dict[str, list[float]] = {}
    for seed in range(options.seeds):
        for name, some in errors(seed, options.rows).items():
            found.setdefault(name, []).extend(some)
    print(f"{options.seeds} seeds, {options.rows} values each, cut into {', '.join(map(str, CUTS))} slices")
    print(f"{'error as a share of the stated one':<40} {'median':>8} {'99%':>8} {'largest':>8} {'outside':>8}")
    failed = False
    for name, some in found.items():
        outside = float(np.mean(np.array(some) > 1 + 1e-9))
        middle, high = np.percentile(some, [50, 99])
        print(f"{name:<40} {middle:>8.2f} {high:>8.2f} {max(some):>8.2f} {outside:>8.1%}")
        failed |= outside > ALLOWED[name.partition("(")[0]]
    save(options.save, found)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
