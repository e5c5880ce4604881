"""Errors: their attributes, and that they survive the way between processes."""

import copy
import pickle

import pytest

from slicewise import errors
from slicewise.errors import OverflowInWindowError, QueryError, RefusedRowsError, SlicewiseError

EXAMPLES = [
    QueryError("`every` is wrong", parameter="every", query="totals", column="price"),
    QueryError("nothing is known"),
    RefusedRowsError("two rows are wrong", [3, 5]),
    OverflowInWindowError("too large", "query 'totals'"),
    OverflowInWindowError("too large"),
]


def test_query_errors_say_what_they_are_about():
    error = QueryError("`every` is wrong", parameter="every", query="totals", column="price")
    assert (error.parameter, error.query, error.column) == ("every", "totals", "price")
    assert str(error) == "`every` is wrong"
    assert error.args == ("`every` is wrong",)


def test_query_errors_know_nothing_unless_told():
    error = QueryError("wrong")
    assert (error.parameter, error.query, error.column) == (None, None, None)


def test_what_a_query_error_is_about_has_names():
    with pytest.raises(TypeError):
        QueryError("wrong", "every")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
@pytest.mark.parametrize("error", EXAMPLES, ids=repr)
def test_errors_survive_copying_and_pickling(error, copied):
    twin = copied(error)
    assert type(twin) is type(error)
    assert (str(twin), twin.args, vars(twin)) == (str(error), error.args, vars(error))


def test_every_error_is_exported_and_of_the_family():
    classes = {n for n, c in vars(errors).items() if isinstance(c, type) and issubclass(c, BaseException)}
    assert classes <= set(errors.__all__)
    assert all(issubclass(getattr(errors, name), SlicewiseError) for name in classes)
