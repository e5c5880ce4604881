"""The store on a Redis server: batches go in one transaction, reads in one round trip."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from slicewise.errors import QueryError
from slicewise.swag.stores.base import Codec, Key, Store, StoreError

__all__ = ["RedisStore"]


class RedisStore(Store):
    """Keys of one window on a Redis server, all with the same prefix. Needs ``pip install slicewise[redis]``.

    The server's settings (``appendonly``, ``save``) decide how much survives its end. Lost pairs are noticed when they
    are read.

    Parameters
    ----------
    url
        The server, such as ``"redis://localhost:6379/0"``.
    name
        The name of the window, which is the prefix of its keys.
    timeout
        Seconds to wait for an answer.
    trust
        Classes of your own whose objects may be read back; see :class:`~slicewise.swag.stores.base.Codec`.

    Examples
    --------
    With a server, ``AMTA(sw.sum(), store=RedisStore("redis://localhost:6379/0", name="clicks"))`` is a window that
    outlives its process. An address that is no URL is refused:

    >>> RedisStore("localhost:6379")
    Traceback (most recent call last):
    slicewise.errors.QueryError: `url` must be like 'redis://localhost:6379/0'; got 'localhost:6379' ...
    """

    def __init__(self, url: str, *, name: str = "slicewise", timeout: float = 10.0, trust: Iterable[type] = ()) -> None:
        try:
            import redis
        except ImportError as e:
            raise StoreError("the store on Redis needs redis-py; install it: pip install 'slicewise[redis]'") from e
        self._redis = redis
        self.url = url
        self.name = name
        self._prefix = name.encode() + b":"
        self._codec = Codec(trust)
        try:
            self._client = redis.Redis.from_url(url, socket_timeout=timeout, socket_connect_timeout=timeout)
        except ValueError as e:
            raise QueryError(f"`url` must be like 'redis://localhost:6379/0'; got {url!r} ({e})") from e
        with self._speaking():
            self._client.ping()

    def get(self, keys: Sequence[Key]) -> list[Any]:
        if not keys:
            return []
        with self._speaking():
            stored: list[Any] = self._client.mget([self._key(k) for k in keys])
        return [None if data is None else self._codec.load(data) for data in stored]

    def write(self, puts: Mapping[Key, Any], deletes: Iterable[Key] = ()) -> None:
        dead = [self._key(k) for k in deletes]
        data = {self._key(k): self._codec.dump(v) for k, v in puts.items()}
        with self._speaking(), self._client.pipeline(transaction=True) as pipe:
            if dead:
                pipe.unlink(*dead)
            if data:
                pipe.mset(data)
            pipe.execute()

    def close(self) -> None:
        self._client.close()

    def _key(self, key: Key) -> bytes:
        return self._prefix + self._codec.key(key)

    @contextmanager
    def _speaking(self) -> Any:
        """Errors of the server as a :class:`StoreError` that names it."""
        try:
            yield
        except (self._redis.ConnectionError, self._redis.TimeoutError) as e:
            raise StoreError(f"the store at {self.url!r} is gone: {e}; continue when it is back") from e
        except self._redis.RedisError as e:
            if "OOM" in str(e) or "maxmemory" in str(e):
                raise StoreError(
                    f"the store at {self.url!r} is full: {e}; nothing was written. Give it more `maxmemory` and "
                    "continue"
                ) from e
            raise StoreError(f"the store at {self.url!r} refuses: {e}") from e
