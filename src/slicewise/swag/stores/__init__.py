"""Key-value stores behind the monoid trees: memory, an embedded database on disk, Redis; and the layers above them."""

from __future__ import annotations

from slicewise.swag.stores.base import Store, StoreError
from slicewise.swag.stores.disk import DiskStore
from slicewise.swag.stores.memory import MemoryStore
from slicewise.swag.stores.remote import RedisStore

__all__ = ["DiskStore", "MemoryStore", "RedisStore", "Store", "StoreError"]
