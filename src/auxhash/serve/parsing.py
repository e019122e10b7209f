"""Parsing of bodies into checked requests. It runs in the threads of `work`.

By hand: FastAPI would parse in the loop that all connections share. A byte of JSON can become
thirty of Python's objects, so values are counted before there are any. 8 MB of empty lists hold up
all other clients for 4.4 s by FastAPI, and for 0.06 s here; 1,000 vectors of 384 numbers for 0.18
and 0.08 s, as Python's own parser shares the interpreter with the loop.
"""

import json
from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from auxhash.serve.refused import RefusedError, invalid

Body = TypeVar("Body", bound=BaseModel)

NOT_AN_OBJECT = "the body must be a JSON object, sent with Content-Type: application/json"


def parse(model: type[Body], body: bytes, content_type: str, max_values: int) -> Body:
    """Return the request in a body; RefusedError says what is wrong with it."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise invalid(NOT_AN_OBJECT)
    # Each value but the first follows one of these; in texts they count too, where they are few.
    n_values = sum(map(body.count, (b",", b"[", b"{")))
    if n_values > max_values:
        raise RefusedError(413, f"a request must hold at most {max_values:,} values")
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, f"the body must be JSON: {error}"[:500]) from error
    if not isinstance(content, dict):
        raise invalid(NOT_AN_OBJECT)
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise invalid(first_error(error.errors(include_url=False, include_input=False))) from error


def first_error(errors: Sequence[ErrorDetails]) -> str:
    """Describe the first error. The value is not repeated: it may be large, or no JSON."""
    where = ".".join(str(part) for part in errors[0]["loc"] if part != "body")[:200]
    why = str(errors[0]["msg"]).removeprefix("Value error, ")[:500]
    return f"{where}: {why}" if where else why
