"""Chunked queue: cheap access by position, stored in chunks. Under DABA, whose pointers point into its middle."""

from __future__ import annotations

from typing import Any

from slicewise.errors import QueryError

__all__ = ["ChunkedQueue"]


class ChunkedQueue:
    """A queue of chunks of equal length; values are found by their position since the beginning.

    Nothing is ever moved or copied when it grows, so that no single append is expensive, and a chunk is given back as
    soon as its last value has left. Here with chunks of 4, after 10 appends and 5 removals::

        position     0  1  2  3   4  5  6  7   8  9
        chunk        (gone)       .  f  g  h   i  j  _  _

    SlickDeque's analysis: n values in k chunks take 2n + 4k + 4n/k, least for k = sqrt(n), where it is 2n + 8 sqrt(n).

    Examples
    --------
    >>> queue = ChunkedQueue(4)
    >>> for letter in "abcdefghij":
    ...     queue.append(letter)
    >>> for _ in range(5):
    ...     queue.popleft()
    >>> queue[5], len(queue), queue.chunks
    ('f', 5, 2)
    """

    def __init__(self, chunk: int = 64) -> None:
        if not isinstance(chunk, int) or isinstance(chunk, bool) or chunk < 1 or chunk & (chunk - 1):
            raise QueryError(f"`chunk` must be a power of two; got {chunk!r}")
        self._shift = chunk.bit_length() - 1
        self._mask = chunk - 1
        self._chunks: dict[int, list[Any]] = {}
        self.front = 0
        self.back = 0

    def __len__(self) -> int:
        return self.back - self.front

    @property
    def chunks(self) -> int:
        """The number of chunks."""
        return len(self._chunks)

    def __getitem__(self, position: int) -> Any:
        return self._chunks[position >> self._shift][position & self._mask]

    def __setitem__(self, position: int, value: Any) -> None:
        self._chunks[position >> self._shift][position & self._mask] = value

    def append(self, value: Any) -> None:
        """Add a value at the back.

        Runtime complexity: O(1); one chunk is allocated now and then.
        """
        at = self.back & self._mask
        if not at:
            self._chunks[self.back >> self._shift] = [None] * (self._mask + 1)
        self._chunks[self.back >> self._shift][at] = value
        self.back += 1

    def pop(self) -> None:
        """Take the newest value back.

        Runtime complexity: O(1).
        """
        self.back -= 1
        chunk, at = self.back >> self._shift, self.back & self._mask
        if at:
            self._chunks[chunk][at] = None
        else:
            del self._chunks[chunk]

    def popleft(self) -> None:
        """Remove the oldest value.

        Runtime complexity: O(1).
        """
        chunk, at = self.front >> self._shift, self.front & self._mask
        if at == self._mask:
            del self._chunks[chunk]
        else:
            self._chunks[chunk][at] = None
        self.front += 1

    def _check(self) -> None:
        assert 0 <= self.front <= self.back
        first, last = self.front >> self._shift, (self.back - 1) >> self._shift
        assert not self._chunks or list(self._chunks) == list(range(first, last + 1))
