"""Bad rows: the reasons, and the error that carries one."""

from __future__ import annotations

import pytest

from slicewise import bad_rows
from slicewise.errors import DataError, RefusedRowsError


def test_every_reason_has_a_metric_of_its_own():
    names = [bad_rows.metric_name(reason) for reason in bad_rows.BAD]
    assert len(set(names)) == len(names)
    assert bad_rows.LATE not in bad_rows.BAD


@pytest.mark.parametrize("reason", bad_rows.BAD)
def test_error_keeps_rows_and_reason(reason):
    error = RefusedRowsError("no", range(2), reason=reason)
    assert (str(error), error.rows, error.reason) == ("no", [0, 1], reason)
    assert isinstance(error, DataError)


def test_error_is_of_user_code_unless_it_says_otherwise():
    assert RefusedRowsError("no", [3]).reason == bad_rows.USER_CODE
