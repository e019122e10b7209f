"""What travels: requests and answers as JSON.

Ids are whole numbers from 0 to 2^63 - 1. JavaScript rounds those above 2^53 - 1, so that answers
give these as text; requests may give any as text.
"""

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from auxhash.compute.checks import LARGEST_ID
from auxhash.stores.points import MAX_TEXT

EXACT = 2**53 - 1  # whole numbers up to it are exact in JavaScript
LARGEST_NUMBER = 1e100  # of a vector; squares stay finite


def _from_digits(value: Any) -> Any:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 19:
        return int(value)
    return value


def id_told(name: int) -> int | str:
    """An id in an answer."""
    return name if name <= EXACT else str(name)


Id = Annotated[
    int,
    BeforeValidator(_from_digits),
    Field(strict=True, ge=0, le=LARGEST_ID),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": LARGEST_ID},
                {"type": "string", "pattern": "^[0-9]{1,19}$"},
            ],
            "description": "From 0 to 2^63 - 1; above 2^53 - 1 best as text.",
        }
    ),
]
IdTold = Annotated[int, Field(ge=0, le=EXACT)] | Annotated[str, Field(pattern="^[0-9]{16,19}$")]
Number = Annotated[
    float, Field(strict=True, allow_inf_nan=False, ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)
]
Vector = Annotated[list[Number], Field(min_length=1)]
Code = Annotated[
    str,
    StringConstraints(pattern="^([0-9a-fA-F]{2})+$"),
    Field(description="Packed code in hexadecimal: bit k of it is bit k % 8 of byte k // 8."),
]
ImageFile = Annotated[str, Field(min_length=1, description="A PNG or JPEG file in base64.")]
Sought = (
    Annotated[str, Field(strict=True, max_length=MAX_TEXT)]
    | Annotated[bool, Field(strict=True)]
    | Annotated[int, Field(strict=True, ge=-LARGEST_ID, le=LARGEST_ID)]
)


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class GivenPoint(Strict):
    """A point to be put in: a vector, which the model encodes, or a code, or both."""

    id: Id
    vector: Vector | None = None
    code: Code | None = None
    payload: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _something(self) -> "GivenPoint":
        if self.vector is None and self.code is None:
            raise ValueError("a point needs a vector or a code")
        return self


class Upsert(Strict):
    points: Annotated[list[GivenPoint], Field(min_length=1)]

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"points": [{"id": 7, "code": "ff00ff00", "payload": {"digit": 3}}]}]
        },
    )


class Upserted(BaseModel):
    upserted: Annotated[int, Field(ge=0)]


class Delete(Strict):
    ids: Annotated[list[Id], Field(min_length=1)]

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"ids": [7, "9223372036854775807"]}]}
    )


class Deleted(BaseModel):
    deleted: Annotated[int, Field(ge=0, description="How many of them were there.")]


class Filter(Strict):
    """Which points a query looks at: by ids, or by a field of their payloads."""

    ids: list[Id] | None = None
    field: str | None = None
    value: Sought | None = None
    values: Annotated[list[Sought], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> "Filter":
        if (self.ids is None) == (self.field is None):
            raise ValueError("a filter has either ids or a field")
        if self.field is not None and (self.value is None) == (self.values is None):
            raise ValueError("a filter by a field has either a value or values")
        if self.field is None and (self.value is not None or self.values is not None):
            raise ValueError("a value belongs to a field")
        return self


class Queries(Strict):
    """Queries, all of one kind, and what is wanted of each."""

    vectors: Annotated[list[Vector], Field(min_length=1)] | None = None
    codes: Annotated[list[Code], Field(min_length=1)] | None = None
    images: Annotated[list[ImageFile], Field(min_length=1)] | None = None
    ids: Annotated[list[Id], Field(min_length=1, description="Points that are there.")] | None = (
        None
    )
    k: Annotated[int, Field(strict=True, ge=1, description="10, without a radius.")] | None = None
    radius: Annotated[int, Field(strict=True, ge=0)] | None = None
    limit: (
        Annotated[int, Field(strict=True, ge=1, description="Of neighbours within the radius.")]
        | None
    ) = None
    rerank: (
        Annotated[
            int,
            Field(strict=True, ge=1, description="Candidates by code, ordered by their vectors."),
        ]
        | None
    ) = None
    metric: (
        Annotated[
            Literal["euclidean", "cosine"],
            Field(description="Of re-ranking; by default the model's, or else euclidean."),
        ]
        | None
    ) = None
    filter: Filter | None = None
    with_payload: Annotated[bool, Field(strict=True)] = False

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"codes": ["ff00ff00"], "k": 3, "with_payload": True},
                {"ids": [7], "radius": 4, "filter": {"field": "digit", "value": 3}},
            ]
        },
    )

    @model_validator(mode="after")
    def _one_kind(self) -> "Queries":
        kinds = (self.vectors, self.codes, self.images, self.ids)
        if sum(kind is not None for kind in kinds) != 1:
            raise ValueError("a query has one of vectors, codes, images and ids")
        if self.radius is not None and (self.k is not None or self.rerank is not None):
            raise ValueError("a radius finds all within it: leave out k and rerank")
        if self.radius is None and self.limit is not None:
            raise ValueError("a limit belongs to a radius; k says how many are wanted")
        if self.rerank is not None and self.codes is not None:
            raise ValueError("codes cannot be re-ranked: give vectors, images or ids")
        return self


class Hit(BaseModel):
    id: IdTold
    distance: float
    payload: dict[str, Any] | None = None


class Hits(BaseModel):
    hits: list[Hit]
    cut: Annotated[bool, Field(description="Whether the limit left out some within the radius.")]


class Answer(BaseModel):
    by: Annotated[str, Field(description="The distance: hamming, euclidean or cosine.")]
    results: Annotated[list[Hits], Field(description="One per query, nearest first, ties by id.")]


class TakenPoint(BaseModel):
    id: IdTold
    code: str
    vector: list[float] | None
    payload: dict[str, Any] | None


class Count(BaseModel):
    count: Annotated[int, Field(ge=0)]


class Info(BaseModel):
    name: str
    version: str
    store: Annotated[str, Field(description="The engine.")]
    points: Annotated[int, Field(ge=0)]
    n_bits: int
    n_features: Annotated[int | None, Field(description="Of vectors; null without a model.")]
    images: Annotated[bool, Field(description="Whether queries may be images.")]
    keeps_points: Annotated[bool, Field(description="Whether vectors and payloads are kept.")]
    limits: dict[str, int]


class Health(BaseModel):
    status: str


class Trouble(BaseModel):
    """Every answer of 4xx and 5xx."""

    error: str
    id: Annotated[str | None, Field(description="Of a fault, in the service's log.")] = None
