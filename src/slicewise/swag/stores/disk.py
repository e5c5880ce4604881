"""The store on disk: LMDB, a memory-mapped tree in one file. Written in transactions; kill -9 loses none of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import IO, Any

from slicewise.errors import QueryError
from slicewise.swag.stores.base import Codec, Key, Store, StoreError

if sys.platform != "win32":
    import fcntl

__all__ = ["DiskStore"]


class DiskStore(Store):
    """An embedded database in a directory, for one window. Needs ``pip install slicewise[disk]``.

    LMDB was chosen over RocksDB: it takes no memory of the process besides the pages that are read, a flush is one
    transaction, and freed space is used again without compaction.

    Parameters
    ----------
    path
        The directory; created if it does not exist.
    max_bytes
        The largest size that it may grow to. Only the part in use takes space on disk.
    sync
        Wait for the disk at every flush. Without it a flush survives the end of the process, as with kill -9, but not
        that of the machine.
    trust
        Classes of your own whose objects may be read back; see :class:`~slicewise.swag.stores.base.Codec`.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = DiskStore(folder.name)
    >>> store.write({(0, 7): (1, 2)})
    >>> store.close()
    >>> again = DiskStore(folder.name)
    >>> again.get([(0, 7), (0, 8)])
    [(1, 2), None]
    >>> again.resize(1 << 37)
    >>> again.close()
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        max_bytes: int = 1 << 36,
        sync: bool = True,
        trust: Iterable[type] = (),
    ) -> None:
        try:
            import lmdb
        except ImportError as e:
            raise StoreError("the store on disk needs LMDB; install it: pip install 'slicewise[disk]'") from e
        self._lmdb = lmdb
        self.path = str(path)
        self._codec = Codec(trust)
        _check_bytes(max_bytes)
        with self._speaking("opened"):
            self._lock = _lock(self.path)
            # `writemap` is left off: with it the file would have holes where other processes see garbage after a crash.
            self._env = lmdb.open(self.path, map_size=max_bytes, sync=sync, max_spare_txns=1, readahead=False)
            self._env.reader_check()  # a killed process leaves its place in the table of readers taken

    def get(self, keys: Sequence[Key]) -> list[Any]:
        key, load = self._codec.key, self._codec.load
        with self._speaking("read"), self._env.begin(buffers=False) as txn:
            stored = [txn.get(key(k)) for k in keys]
        return [None if data is None else load(data) for data in stored]

    def write(self, puts: Mapping[Key, Any], deletes: Iterable[Key] = ()) -> None:
        key, dump = self._codec.key, self._codec.dump
        data = sorted((key(k), dump(v)) for k, v in puts.items())
        with self._speaking("written"), self._env.begin(write=True) as txn:
            for k in deletes:
                txn.delete(key(k))
            txn.cursor().putmulti(data)

    def resize(self, max_bytes: int) -> None:
        """Let the store grow further, after it has become full.

        Parameters
        ----------
        max_bytes
            The new largest size.
        """
        _check_bytes(max_bytes)
        with self._speaking("resized"):
            self._env.set_mapsize(max_bytes)

    def close(self) -> None:
        self._env.close()
        if self._lock is not None:
            self._lock.close()

    @contextmanager
    def _speaking(self, done: str) -> Any:
        """Errors of LMDB as a :class:`StoreError` that names the store."""
        try:
            yield
        except (self._lmdb.MapFullError, self._lmdb.DiskError) as e:
            raise StoreError(
                f"the store in {self.path!r} is full: {e}; nothing was written. "
                "Give it more room with `store.resize(max_bytes)` and continue"
            ) from e
        except (self._lmdb.Error, OSError) as e:
            raise StoreError(f"the store in {self.path!r} cannot be {done}: {e or type(e).__name__}") from e


def _lock(path: str) -> IO[str] | None:
    """Keep other processes out, which would overwrite this one's state; the lock ends with the process."""
    os.makedirs(path, exist_ok=True)
    if sys.platform == "win32":
        return None
    file = open(os.path.join(path, "window.lock"), "w")  # noqa: SIM115
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as e:
        file.close()
        raise OSError("another process has it open") from e
    return file


def _check_bytes(max_bytes: int) -> None:
    if not isinstance(max_bytes, int) or isinstance(max_bytes, bool) or max_bytes < 1 << 16:
        raise QueryError(f"`max_bytes` must be a count of bytes, at least {1 << 16}; got {max_bytes!r}")
