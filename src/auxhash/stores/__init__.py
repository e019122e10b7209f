"""Codes in the databases people have: one protocol, `Store`, and one file per engine."""

from collections.abc import Callable
from importlib import import_module

from auxhash.codes import MAX_BITS
from auxhash.compute import checks, context
from auxhash.compute.fingerprint import checked
from auxhash.stores.address import Address, file_url
from auxhash.stores.points import Having, Point
from auxhash.stores.reencoding import encode_again
from auxhash.stores.store import NoStoreError, ReencodingError, Store, StoreError

__all__ = [
    "SCHEMES",
    "Having",
    "NoStoreError",
    "Point",
    "ReencodingError",
    "Store",
    "StoreError",
    "encode_again",
    "file_url",
    "open",
]

# Scheme of a URL, and the class of its store; loaded when one is opened.
SCHEMES = {
    "sqlite": "sqlite.SqliteStore",
    "postgresql": "postgresql.PostgresqlStore",
    "duckdb": "duckdb.DuckdbStore",
    "lancedb": "lancedb.LancedbStore",
    "milvus": "milvus.MilvusStore",
    "milvus+http": "milvus.MilvusStore",
    "milvus+https": "milvus.MilvusStore",
}


def class_at(address: Address) -> type[Store]:
    """Class of the stores at an address, by its scheme; ArgumentError if that is unknown."""
    known = SCHEMES.get(address.parts.scheme)
    if known is None:
        every = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        came = str(address).removeprefix("://")  # without a scheme
        raise checks.ArgumentError(f"url must begin with one of {every}; got {came!r}")
    module, name = known.split(".")
    store_class: type[Store] = getattr(import_module(f"auxhash.stores.{module}"), name)
    return store_class


def open(  # noqa: A001
    url: str,
    n_bits: int | None = None,
    n_jobs: int | None = None,
    fingerprint: str | None = None,
) -> Store:
    """Open the store of codes at a URL, or make it if it is not there yet.

    >>> with open("sqlite:///codes.db", n_bits=3) as store:  # doctest: +SKIP
    ...     store.upsert([7, 9], [[1, 1, 1], [1, -1, -1]])
    ...     store.search([1, -1, 1], k=1)
    (array([[1]], dtype=int32), array([[7]]))

    Args:
        url: sqlite:///codes.db, duckdb:///codes.duckdb, lancedb:///folder or milvus:///codes.db,
            with four slashes for an absolute path; postgresql://user:password@host/database or
            milvus+http://host:19530; `file_url` makes one of any path. `?table=NAME` tells
            several stores in one database apart; its name is codes, otherwise.
        n_bits: bits per code. Without, the store must be there already; with, it must have as
            many, or it is made.
        n_jobs: threads of searches that are made here (SQLite); all cores, by default.
        fingerprint: of the model that the store is opened for; OtherModelError if another one
            made its codes.
    """
    fingerprint = checked("fingerprint", fingerprint)
    address = Address.of(url)
    if n_bits is not None:
        n_bits = checks.integer("n_bits", n_bits, 1, MAX_BITS)
    store_class: Callable[[Address, int | None], Store] = class_at(address)
    with context.using(n_jobs=n_jobs):
        store = store_class(address, n_bits)
    try:
        if fingerprint is not None:
            store.check_model("the model", fingerprint)
    except BaseException:
        store.close()
        raise
    return store
