"""Address: where a store is, read from its URL."""

import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from auxhash.compute.checks import ArgumentError

TABLE = "codes"  # if the URL names none
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,47}")  # of a table: safe in all engines' statements


@dataclass(frozen=True)
class Address:
    """The parts of a URL `scheme://user:password@host:port/path?table=name&other=options`."""

    parts: SplitResult
    table: str
    options: tuple[tuple[str, str], ...]  # all but the table

    @classmethod
    def of(cls, url: Any) -> "Address":
        """Read a URL; ArgumentError where it is none, without a word of its password."""
        if not isinstance(url, str):
            raise ArgumentError(f"url must be text, such as sqlite:///codes.db, got {url!r}")
        try:
            parts = urlsplit(url)
            _ = parts.port
        except ValueError as error:
            raise ArgumentError(f"url must be a URL: {error}") from None
        # A + is a + in the URLs of databases.
        given = parse_qsl(parts.query.replace("+", "%2B"), keep_blank_values=True)
        tables = [value for key, value in given if key == "table"]
        table = tables[-1] if tables else TABLE
        if not NAME.fullmatch(table):
            raise ArgumentError(
                "table in url must be a name of up to 48 letters, digits and _, and not begin "
                f"with a digit; got {table!r}"
            )
        return cls(parts, table, tuple(pair for pair in given if pair[0] != "table"))

    def __str__(self) -> str:
        """The URL, to be told: the password is left out."""
        place = self.parts.netloc
        if self.parts.password is not None:
            user, _, host = place.rpartition("@")
            place = f"{user.partition(':')[0]}:***@{host}"
        hidden = [(key, "***" if key == "password" else value) for key, value in self.options]
        return self._with(place, [*hidden, *self._named_table])

    def file(self) -> Path:
        """The path of a file or folder: scheme:///relative/path or scheme:////absolute/path."""
        scheme = self.parts.scheme
        if self.parts.netloc or len(self.parts.path) < 2:
            raise ArgumentError(
                f"url must be {scheme}:///path, with four slashes for an absolute path; got {self}"
            )
        self.no_options()
        return Path(unquote(self.parts.path[1:])).expanduser()

    def no_options(self) -> None:
        """Raise ArgumentError for an option that is not known here."""
        if self.options:
            raise ArgumentError(
                f"{self.parts.scheme} URLs have the option table and no other; got "
                f"{self.options[0][0]!r}"
            )

    @property
    def _named_table(self) -> list[tuple[str, str]]:
        return [] if self.table == TABLE else [("table", self.table)]

    def _with(self, place: str, options: list[tuple[str, str]]) -> str:
        # urlunsplit would drop the empty place of sqlite:////path.
        query = f"?{urlencode(options, safe='/*:', quote_via=quote)}" if options else ""
        return f"{self.parts.scheme}://{place}{self.parts.path}{query}"


def engine(module: str, extra: str) -> ModuleType:
    """The engine's package; the error says what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"this store needs {module}: pip install 'auxhash[{extra}]' ({error})"
        ) from error
