"""Address: where a store is, read from its URL.

All but the first `?` stands for itself, `#` too: such URLs have no fragments. Percent-quoted signs
are read as UTF-8, and a `%` that no two hexadecimal digits follow is a `%`.
"""

import os
import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from auxhash.compute.checks import ArgumentError
from auxhash.compute.extras import install

TABLE = "codes"  # if the URL names none
UNSPLIT = re.compile(r"[#\0-\x1f\x7f]")  # signs that urlsplit would drop, with what follows a #
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,47}")  # of a table: safe in all engines' statements


@dataclass(frozen=True)
class Address:
    """The parts of a URL `scheme://user:password@host:port/path?table=name&other=options`."""

    parts: SplitResult
    table: str
    options: tuple[tuple[str, str], ...]  # all but the table

    @classmethod
    def of(cls, url: object) -> "Address":
        """Read a URL; ArgumentError where it is none, without a word of its password."""
        if not isinstance(url, str):
            raise ArgumentError(f"url must be text, such as sqlite:///codes.db, got {url!r}")
        try:
            unquote(url, errors="strict")
            parts = urlsplit(UNSPLIT.sub(lambda sign: quote(sign[0]), url))
        except ValueError as error:
            raise ArgumentError(f"url must be a URL: {error}") from None
        try:
            _ = parts.port
        except ValueError:
            raise ArgumentError(
                "port in url must be a whole number up to 65535; in a user or password / is %2F, "
                "? is %3F and @ is %40"
            ) from None
        options = _options(parts.query) if "?" in url else []
        tables = [value for key, value in options if key == "table"]
        table = tables[-1] if tables else TABLE
        if not NAME.fullmatch(table):
            raise ArgumentError(
                "table in url must be a name of up to 48 letters, digits and _, and not begin "
                f"with a digit; got {table!r}"
            )
        return cls(parts, table, tuple(pair for pair in options if pair[0] != "table"))

    def __str__(self) -> str:
        """The URL without its password, for messages."""
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
        path = unquote(self.parts.path[1:])
        if "\0" in path:
            raise ArgumentError(f"the path in url must not hold the character 0; got {self}")
        return Path(path).expanduser()

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


def file_url(scheme: str, path: str | os.PathLike[str]) -> str:
    """The URL of a store in this file or folder, whatever signs its name has.

    >>> file_url("sqlite", "/data/notes #1.db")
    'sqlite:////data/notes%20%231.db'
    """
    return f"{scheme}:///{quote(os.fsencode(Path(path).absolute().as_posix()), safe='/:')}"


def _options(query: str) -> list[tuple[str, str]]:
    plain = query.replace("+", "%2B") or "?"  # a + is a + in the URLs of databases
    try:
        return parse_qsl(plain, keep_blank_values=True, strict_parsing=True)
    except ValueError:
        raise ArgumentError(
            "url must have options such as table=NAME after its ?; a ? in a path is written %3F"
        ) from None


def engine(module: str, extra: str) -> ModuleType:
    """The engine's package; the error says what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"this store needs {module}: {install(extra)} ({error})") from error
