"""Write-behind: values go to a store in the background, while they can be read already. Used by slide policies.

What waits is bounded: whoever puts more waits until there is room. A store that fails is reported by the next call, and
nothing that waits is lost: it is written when the store is back.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from slicewise.swag.stores.base import Key, Store, StoreError

__all__ = ["MOST_WAITING", "WriteBehind", "write_behind"]

#: How many values may wait to be written, and how many are written in one batch at most.
MOST_WAITING, BATCH = 8192, 1024


class WriteBehind:
    """What waits to be written to a store, and the thread that writes it.

    Parameters
    ----------
    store
        Where values go.
    most
        How many may wait.

    Examples
    --------
    >>> from slicewise.swag import MemoryStore
    >>> store = MemoryStore()
    >>> writer = WriteBehind(store)
    >>> writer.put({(0, 7, "q"): (1, 2)})
    >>> writer.get([(0, 7, "q"), (0, 8, "q")])
    [(1, 2), None]
    >>> writer.flush()
    >>> store.get([(0, 7, "q")])
    [(1, 2)]
    """

    def __init__(self, store: Store, most: int = MOST_WAITING) -> None:
        self._store, self._most = store, most
        self._waiting: dict[Key, Any] = {}
        self._changed = threading.Condition()
        self._writing = threading.Lock()  # taken before the other one, where both are
        self._error: StoreError | None = None
        self._thread: threading.Thread | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, values: Mapping[Key, Any]) -> None:
        """Take over values to be written; waits for room, and raises what the store has failed with."""
        with self._changed:
            self._waiting |= values
            self._changed.notify_all()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._write_on, daemon=True, name="slicewise store")
                self._thread.start()
            self._changed.wait_for(lambda: len(self._waiting) <= self._most or self._error is not None)
            if len(self._waiting) > self._most and self._error is not None:
                error, self._error = self._error, None  # the next call tries again
                raise error

    def get(self, keys: Sequence[Key]) -> list[Any]:
        """Read values, whether they are written or wait; None for a key that is nowhere."""
        with self._changed:
            values = {key: self._waiting[key] for key in keys if key in self._waiting}
        missing = [key for key in keys if key not in values]
        values |= zip(missing, self._store.get(missing) if missing else (), strict=True)
        return [values[key] for key in keys]

    def flush(self, deletes: Iterable[Key] = ()) -> None:
        """Write all that waits, in this thread, and delete; afterwards the store has everything, or this raises."""
        gone = list(deletes)
        with self._writing:
            with self._changed:
                self._error, batch = None, dict(self._waiting)
            self._store.write({key: value for key, value in batch.items() if key not in set(gone)}, gone)
            self._written(batch)

    def _write_on(self) -> None:
        """Write batch by batch for as long as something comes, in the background."""
        while True:
            with self._changed:
                if not self._changed.wait_for(lambda: self._waiting and self._error is None, timeout=1.0):
                    self._thread = None
                    return
            with self._writing:
                with self._changed:
                    batch = dict(islice(self._waiting.items(), BATCH))
                try:
                    self._store.write(batch)
                    self._written(batch)
                except Exception as error:
                    with self._changed:
                        known = error if isinstance(error, StoreError) else None
                        self._error = known or StoreError(f"the store has failed in the background: {error!r}")
                        self._changed.notify_all()

    def _written(self, batch: Mapping[Key, Any]) -> None:
        with self._changed:
            for key, value in batch.items():
                if self._waiting.get(key) is value:  # not put anew in the meantime
                    del self._waiting[key]
            self._changed.notify_all()


def write_behind(store: Store) -> WriteBehind:
    """The one writer of a store, for all windows that are kept there."""
    writer: WriteBehind = vars(store).setdefault("_write_behind", WriteBehind(store))
    return writer
