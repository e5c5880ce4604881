"""Options of a run: unknown words and misplaced options are refused, and the error says which option it is."""

import re

import pytest

from slicewise.errors import QueryError
from slicewise.options import RunOptions


@pytest.mark.parametrize(
    ("options", "stream", "parameter", "message"),
    [
        (
            RunOptions(emit="change"),
            True,
            "emit",
            "`emit` must be 'complete', 'changes' or 'differences'; got 'change'; did you mean 'changes'?",
        ),
        (
            RunOptions(shuffle="rows"),
            True,
            "shuffle",
            "`shuffle` is for batches, and this DataFrame is a stream; leave it out",
        ),
        (
            RunOptions(emit="changes"),
            False,
            "emit",
            "emit='changes' is for streams, and this DataFrame is a batch; leave it out",
        ),
        (
            RunOptions(idle="1 minute"),
            False,
            "idle",
            "`idle` is for streams, and this DataFrame is a batch; leave it out",
        ),
    ],
)
def test_options_that_make_no_sense_are_refused(options, stream, parameter, message):
    with pytest.raises(QueryError, match=f"^{re.escape(message)}$") as caught:
        options.check(stream=stream)
    assert caught.value.parameter == parameter


def test_defaults_fit_streams_and_batches():
    RunOptions().check(stream=True)
    RunOptions().check(stream=False)
    assert RunOptions().non_defaults() == {}
