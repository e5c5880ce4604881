"""check_laws: finds what is wrong with aggregates that are wrong on purpose, and nothing with the others."""

from __future__ import annotations

import math
import re
import statistics

import numpy as np
import pyarrow as pa
import pytest

from slicewise.aggregates.arithmetic import Count, CountMonoid
from slicewise.aggregates.base import Aggregate, ObjectMonoid
from slicewise.aggregates.user import aggregate
from slicewise.errors import AggregateError
from slicewise.testing import check_laws


class Sum(Aggregate):
    name = "total"
    identity = 0
    commutative = True
    invertible = True

    def combine(self, a, b):
        return a + b

    def invert(self, a, b):
        return a - b


class Concat(Aggregate):
    name = "text"
    identity = ""

    def combine(self, a, b):
        return a + b


class Mean(Aggregate):
    name = "mean"
    identity = (0.0, 0)
    commutative = True

    def lift(self, value):
        return (float(value), 1)

    def combine(self, a, b):
        return (a[0] + b[0], a[1] + b[1])

    def lower(self, partial):
        return partial[0] / partial[1] if partial[1] else None


class ArgMax(Aggregate):
    name = "argmax"
    skips_nulls = False

    def lift(self, value, by):
        return None if by is None else (value, by)

    def combine(self, a, b):
        if a is None or b is None:
            return b if a is None else a
        return a if a[1] >= b[1] else b

    def lower(self, partial):
        return None if partial is None else partial[0]


def broken(lawless, samples, types=None):
    with pytest.raises(AggregateError) as caught:
        check_laws(lawless, samples, types)
    return str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lawful", "samples"),
    [
        (Count(), [1, 2, 3]),
        (Count("v"), [1, None, 3]),
        (Sum("v"), [3, 0, -7, None, 2**70 % 1000]),
        (Sum("v"), [1e16, 1.0, -1e16, 0.1]),
        (Sum("v"), [1.0, math.inf, math.nan, -math.inf]),
        (Sum(), [1, 2, 3]),
        (Concat("v"), ["a", "", "bc", None]),
        (Mean("v"), [0.1, 0.2, 0.3, None, 1e6]),
        (ArgMax("v", "by"), [("a", 1), ("b", 7), ("c", 7), ("d", None), (None, 9)]),
        (ArgMax(), [("a", 1), ("b", 7)]),
        (Sum("v"), [5]),
        (Sum("v"), range(100)),
    ],
    ids=repr,
)
def test_lawful_aggregates_pass(lawful, samples):
    assert check_laws(lawful, samples) is None


def test_what_makes_an_aggregate_is_checked_as_well_as_one():
    longest = aggregate(combine=lambda a, b: a if len(a) >= len(b) else b, identity="", name="longest")
    check_laws(longest, ["to", "slice", "cheap"])
    assert "`longest` is not commutative" in broken(
        aggregate(combine=longest("w").combine, identity="", name="longest", commutative=True), ["slice", "cheap"]
    )


def test_wrong_identity_is_found():
    class Largest(Aggregate):
        name = "largest"
        identity = 0

        def combine(self, a, b):
            return max(a, b)

    message = broken(Largest("v"), [3, -2])
    assert message.startswith("`largest` has a wrong identity: combine(identity, -2) = 0, but -2; `identity` is 0; it ")


def test_identity_that_is_wrong_only_on_the_right_is_found():
    class Right(Sum):
        def combine(self, a, b):
            return 1 if b == 0 else a + b

    assert "`total` has a wrong identity: combine(3, identity) = 1, but 3;" in broken(Right("v"), [3, 4])


def test_combine_that_is_not_associative_is_found():
    class Halfway(Aggregate):
        name = "mean"

        def combine(self, a, b):
            return b if a is None else a if b is None else (a + b) / 2

    message = broken(Halfway("v"), [1, 2, 6])
    assert message == (
        "`mean` is not associative: combine(combine(1, 2), 6) = 3.75, but combine(1, combine(2, 6)) = 2.5; "
        "an order of combining must not matter: keep in the partial what is lost, and drop it in `lower`"
    )


def test_combine_that_is_not_associative_only_on_partials_of_several_rows_is_found():
    class Forgetful(Aggregate):
        """Right for up to four rows in any order of combining; then the left side loses its last row."""

        name = "forgetful"
        identity = ()

        def lift(self, value):
            return (value,)

        def combine(self, a, b):
            return (a[:-1] if len(a) > 3 and b else a) + b

    assert "`forgetful` is not associative: combine(combine(" in broken(Forgetful("v"), [1, 2, 3])


def test_wrong_inverse_is_found():
    class Wrong(Sum):
        def invert(self, a, b):
            return b - a

    message = broken(Wrong("v"), [3, 5])
    assert re.match(
        r"`total` has a wrong inverse: invert\(combine\(3, 3\), 3\) = -3, but 3; `invert` must take", message
    )


def test_missing_inverse_is_named():
    class Promise(Concat):
        invertible = True

    with pytest.raises(AggregateError, match="`text` cannot be inverted"):
        check_laws(Promise("v"), ["a", "b"])


def test_false_claim_to_commute_is_found():
    class Claim(Concat):
        commutative = True

    message = broken(Claim("v"), ["a", "b"])
    assert message.startswith("`text` is not commutative: combine('a', 'b') = 'ab', but combine('b', 'a') = 'ba'; set ")
    assert message.endswith("set `commutative` to False, and partials are combined in event-time order only")


def test_lifted_values_that_change_are_written_as_lifted():
    class Wrong(Mean):
        def combine(self, a, b):
            return (a[0] + b[0], max(a[1], b[1]) + 1)

    assert "combine(identity, lift(1)) = (1.0, 2), but lift(1) = (1.0, 1);" in broken(Wrong("v"), [1, 2])


def test_combine_that_changes_its_arguments_is_found():
    class Shared(Aggregate):
        name = "shared"
        identity = ()

        def lift(self, value):
            return [value]

        def combine(self, a, b):
            if isinstance(a, list):
                a.extend(b)
                return a
            return list(b)

    message = broken(Shared("v"), [1, 2])
    assert message == (
        "`shared` changes its arguments: combine(lift(1), lift(2)) turned [1] into [1, 2]; "
        "partials are shared, so let `combine` return a new one"
    )


def test_partials_may_differ_in_what_no_result_shows():
    class Median(Aggregate):
        name = "middle"
        identity = ()
        commutative = True

        def lift(self, value):
            return (value,)

        def combine(self, a, b):
            return a + b

        def lower(self, partial):
            return statistics.median(partial) if partial else None

    check_laws(Median("v"), [1, 2, 7])


def test_partials_must_not_differ_in_what_a_later_result_shows():
    class Hidden(Aggregate):
        """Shows only how many rows there are, until there are enough of them."""

        name = "hidden"
        identity = ()
        commutative = True

        def lift(self, value):
            return (value,)

        def combine(self, a, b):
            return a + b

        def lower(self, partial):
            return partial[0] if len(partial) > 2 else len(partial)

    assert "`hidden` is not commutative: combine(lift(1), lift(2))" in broken(Hidden("v"), [1, 2])


def test_partials_of_a_class_without_equality_are_compared_by_what_they_hold():
    class Box:
        def __init__(self, total):
            self.total = total

    class Boxed(Aggregate):
        name = "boxed"
        identity = Box(0)

        def lift(self, value):
            return Box(value)

        def combine(self, a, b):
            return Box(a.total + b.total)

        def lower(self, partial):
            return partial.total

    check_laws(Boxed("v"), [1, 2, 3])


def test_values_that_arrow_does_not_know_are_checked_one_by_one():
    class Union(Aggregate):
        name = "union"
        identity = frozenset()
        commutative = True

        def combine(self, a, b):
            return a | b

    check_laws(Union("v"), [frozenset([1]), frozenset([2, 3])])
    assert "is not commutative" in broken(type("Minus", (Union,), {"combine": lambda _, a, b: a or b})("v"), [{1}, {2}])


# -- on arrays


class CountWith(Count):
    """A count whose monoid is broken in one place."""

    def __init__(self, **broken):
        super().__init__("v")
        self.broken = broken

    def bind(self, *types):
        monoid = CountMonoid(self, types)
        for name, function in self.broken.items():
            setattr(monoid, name, function)
        return monoid


@pytest.mark.parametrize(
    ("name", "function", "message"),
    [
        (
            "identity",
            (1,),
            "has a wrong identity on arrays: combine(identity, lift(5)) = 2, but lift(5) = 1; `identity` is 1",
        ),
        ("combine", lambda a, b: (a[0] - b[0],), "has a wrong identity on arrays: combine(identity, lift(5)) = -1"),
        (
            "invert",
            lambda a, b: a,
            "has a wrong inverse on arrays: invert(combine(lift(5), lift(5)), lift(5)) = 2, but ",
        ),
        ("fold", lambda parts, starts: (parts[0][starts],), "has a wrong `fold` on arrays: fold of lift(5), lift(6), "),
        ("fold", lambda parts, starts: parts, "has a wrong `fold` on arrays: 3 partials for 1 segments; it must give"),
        (
            "scan",
            lambda parts: parts,
            "has a wrong `scan` on arrays: scan of lift(5), lift(6) = 1, but combining one by",
        ),
        (
            "lift_fold",
            lambda columns, times, starts: (starts,),
            "has a wrong `lift_fold` on arrays: lift_fold of lift(5)",
        ),
        (
            "lower",
            lambda parts: CountMonoid(Count(), ()).lower((parts[0] * 2,)),
            "has two answers for lift(5), lift(6), lift(7): 6 on arrays, but 3 on single values; `bind`",
        ),
        (
            "combine",
            lambda a, b: (a[0] + b[0] if len(a[0]) == 1 else a[0],),
            "has a wrong `combine` on arrays: combine of lift(5), lift(6) = 1, but combining one by one",
        ),
    ],
)
def test_monoid_that_is_wrong_is_found(name, function, message):
    assert f"`count` {message}" in broken(CountWith(**{name: function}), [5, 6, 7])


def test_array_functions_that_change_their_arguments_are_found():
    def combine(a, b):
        a[0][:] += b[0]
        return a

    assert "`count` changes its arguments on arrays: combine(lift(5), lift(6))" in broken(
        CountWith(combine=combine), [5, 6]
    )


def test_timed_partials_settle_by_time_what_comes_first():
    class Timed(Concat):
        name = "timed"
        timed = True

    message = broken(Timed("v"), ["a", "b"])
    assert message.startswith(
        "`timed` is not settled by event time on arrays: combine('a', 'b') = 'ab', but combine('b'"
    )


def test_types_may_be_given():
    seen = []

    class Typed(Sum):
        def bind(self, *types):
            seen.append(types)
            return ObjectMonoid(self, types)

    check_laws(Typed("v"), [1, 2], types=[pa.int16()])
    check_laws(Typed("v"), [1, 2])
    assert seen == [(pa.int16(),), (pa.int64(),)]


def test_numpy_samples_are_fine():
    check_laws(Sum("v"), list(np.array([1.5, 2.5])))


# -- samples that do not fit


def test_what_is_no_aggregate_is_refused():
    assert broken("sum", [1]) == "`check_laws` needs an aggregate such as sw.sum('v'); got 'sum'"


def test_no_samples_are_refused():
    assert broken(Sum("v"), []) == "`check_laws` needs samples to try `total` on; got none"


def test_samples_must_have_as_many_values_as_there_are_columns():
    assert broken(ArgMax("v", "by"), [1]) == "`argmax` takes several columns, so a sample is a tuple; got 1"


def test_types_must_be_as_many_as_there_are_columns():
    message = broken(ArgMax("v", "by"), [(1, 2)], types=[pa.int64()])
    assert message == "`types` must name one type per column; got 1 for 2 columns"
