"""Testing: what slicewise is tested with, for your own windows and aggregates too. Beside the path; no engine in here.

* :class:`Oracle` gives every result of a workload by definition, :func:`value_of` that of one aggregate over one list
  of rows, :func:`fold` what is finally true after all corrections;
* :func:`in_order`, :func:`football` and :func:`disordered` make streams from a seed;
* :func:`check_laws` looks for a counterexample to what an aggregate promises.
"""

from slicewise.testing.definitions import value_of
from slicewise.testing.laws import check_laws
from slicewise.testing.oracle import Oracle, fold
from slicewise.testing.streams import Stream, disordered, football, in_order

__all__ = ["Oracle", "Stream", "check_laws", "disordered", "fold", "football", "in_order", "value_of"]
