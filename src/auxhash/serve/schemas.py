"""Schemas of requests and responses, as JSON.

Ids are whole numbers from 0 to 2^63 - 1, or text; those of one store are of one kind. JavaScript
rounds numbers above 2^53 - 1, so that responses have these as text; requests may have any as text.

Lists of requests stop at their first error: a million wrong numbers are one error, not a million.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    StringConstraints,
    WithJsonSchema,
    create_model,
    model_validator,
)

from auxhash.compute.checks import LARGEST_ID, MAX_ID_BYTES
from auxhash.compute.fingerprint import N_DIGITS
from auxhash.serve.limits import Limits
from auxhash.serve.parsing import Body
from auxhash.stores.ids import Id
from auxhash.stores.points import MAX_CHARACTERS

MAX_EXACT_INTEGER = 2**53 - 1  # whole numbers up to it are exact in JavaScript
HAMMING: Literal["hamming"] = "hamming"
LARGEST_NUMBER = 1e100  # of a vector; squares stay finite


def _id(value: object) -> Id:
    """Check an id as far as it can be done without the store."""
    if (type(value) is int and 0 <= value <= LARGEST_ID) or (isinstance(value, str) and value):
        return value
    raise ValueError("an id must be a whole number from 0 to 2^63 - 1, or text that is not empty")


def json_id(name: Id) -> Id:
    """Return an id as responses have it: text, where JavaScript would round the number."""
    return str(name) if isinstance(name, int) and name > MAX_EXACT_INTEGER else name


RequestId = Annotated[
    int | str,
    PlainValidator(_id),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": LARGEST_ID},
                {"type": "string", "minLength": 1, "maxLength": MAX_ID_BYTES},
            ],
            "description": "A number from 0 to 2^63 - 1, above 2^53 - 1 best as text; or text, of "
            f"at most {MAX_ID_BYTES} bytes. The first points decide for all.",
        }
    ),
]
JsonId = Annotated[int, Field(ge=0, le=MAX_EXACT_INTEGER)] | Annotated[str, Field(min_length=1)]
Number = Annotated[
    float, Field(strict=True, allow_inf_nan=False, ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)
]
Vector = Annotated[list[Number], Field(min_length=1, fail_fast=True)]
Code = Annotated[
    str,
    StringConstraints(pattern="^([0-9a-fA-F]{2})+$"),
    Field(description="Packed code in hexadecimal: bit k of it is bit k % 8 of byte k // 8."),
]
ImageFile = Annotated[str, Field(min_length=1, description="A PNG or JPEG file in base64.")]
Fingerprint = Annotated[
    str,
    StringConstraints(pattern=f"^[0-9a-f]{{{N_DIGITS}}}$"),
    Field(description="Of the model that made the codes; compared with the store's."),
]
FilterValue = (
    Annotated[str, Field(strict=True, max_length=MAX_CHARACTERS)]
    | Annotated[bool, Field(strict=True)]
    | Annotated[int, Field(strict=True, ge=-LARGEST_ID, le=LARGEST_ID)]
)


def _shown(*examples: dict[str, Any]) -> ConfigDict:
    """Return the configuration of a model with examples in the OpenAPI document.

    They hold no None, which FastAPI leaves out.
    """
    return ConfigDict(json_schema_extra={"examples": list(examples)})


class Strict(BaseModel):
    """A request, or part of one: fields that it does not have are refused."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _one_unknown(cls, content: object) -> object:
        """Leave one of the unknown fields, which is refused: each would be an error of its own."""
        if not isinstance(content, dict):
            return content
        known = {name: content[name] for name in cls.model_fields if name in content}
        unknown = next((name for name in content if name not in known), None)
        return known if unknown is None else {**known, unknown: None}


class NewPoint(Strict):
    """A point to be put in: a vector or an image, which the model encodes, a code, or both."""

    id: RequestId
    vector: Vector | None = None
    image: ImageFile | None = None
    code: Code | None = None
    payload: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _vector_or_code(self) -> "NewPoint":
        if self.vector is None and self.image is None and self.code is None:
            raise ValueError("a point needs a vector, an image or a code")
        if self.vector is not None and self.image is not None:
            raise ValueError("a point has either a vector or an image")
        return self


class Upsert(Strict):
    points: list[NewPoint]
    fingerprint: Fingerprint | None = None

    model_config = _shown({"points": [{"id": 7, "code": "ff00ff00", "payload": {"year": 2016}}]})


class Upserted(BaseModel):
    upserted: Annotated[int, Field(ge=0)]

    model_config = _shown({"upserted": 1})


class Delete(Strict):
    ids: list[RequestId]

    model_config = _shown({"ids": [7, "9223372036854775807"]})


class Deleted(BaseModel):
    deleted: Annotated[int, Field(ge=0, description="How many of them were there.")]

    model_config = _shown({"deleted": 1})


class Encode(Strict):
    """Vectors or images, whose codes are wanted."""

    vectors: list[Vector] | None = None
    images: list[ImageFile] | None = None

    model_config = _shown({"vectors": [[0.5, -1.0, 2.0]]})

    @model_validator(mode="after")
    def _one_kind(self) -> "Encode":
        if (self.vectors is None) == (self.images is None):
            raise ValueError("give either vectors or images")
        return self


class Encoded(BaseModel):
    codes: list[str]
    fingerprint: Annotated[str, Field(description="Of the model that made them.")]

    model_config = _shown({"codes": ["ff00ff00"], "fingerprint": "0123456789abcdef"})


class Filter(Strict):
    """Points that a query looks at: by ids, or by a field of their payloads."""

    ids: list[RequestId] | None = None
    field: str | None = None
    value: FilterValue | None = None
    values: list[FilterValue] | None = None

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

    vectors: list[Vector] | None = None
    codes: list[Code] | None = None
    images: list[ImageFile] | None = None
    ids: list[RequestId] | None = None
    by: Annotated[
        Literal["hamming", "outputs", "tables"],
        Field(description="The distance: of codes, or that of the model's outputs or tables."),
    ] = HAMMING
    k: int | None = None
    radius: Annotated[int, Field(strict=True, ge=0)] | None = None
    limit: int | None = None
    rerank: int | None = None
    metric: (
        Annotated[
            Literal["euclidean", "cosine"],
            Field(description="Of re-ranking; by default the model's, or else euclidean."),
        ]
        | None
    ) = None
    filter: Filter | None = None
    with_payload: Annotated[bool, Field(strict=True)] = False
    fingerprint: Fingerprint | None = None

    model_config = _shown(
        {"codes": ["ff00ff00"], "k": 3, "with_payload": True},
        {"ids": [7], "radius": 4, "filter": {"field": "year", "value": 2016}},
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
        if self.by != HAMMING and self.codes is not None:
            raise ValueError("codes have no outputs or tables: give vectors, images or ids")
        if self.by != HAMMING and self.radius is not None:
            raise ValueError("a radius counts bits: leave out by")
        if self.fingerprint is not None and self.codes is None:
            raise ValueError("a fingerprint is that of codes: leave it out")
        return self


@dataclass(frozen=True)
class Requests:
    """Schemas of the requests of a service, with its limits."""

    upsert: type[Upsert]
    delete: type[Delete]
    encode: type[Encode]
    queries: type[Queries]


def requests(limits: Limits) -> Requests:
    """Return the schemas with limits: these are checked first, and documented."""
    batch = limits.batch
    upsert = _limited(Upsert, points=(_list_of(NewPoint, batch), ...))
    delete = _limited(Delete, ids=(_list_of(RequestId, batch), ...))
    chosen = _limited(
        Filter,
        ids=(_list_of(RequestId, limits.choice, 0) | None, None),
        values=(_list_of(FilterValue, batch) | None, None),
    )
    ordered = "Candidates by code, ordered by their vectors."
    vectors = (_list_of(Vector, batch) | None, None)
    images = (_list_of(ImageFile, min(batch, limits.images)) | None, None)
    encode = _limited(Encode, vectors=vectors, images=images)
    queries = _limited(
        Queries,
        vectors=vectors,
        codes=(_list_of(Code, batch) | None, None),
        images=images,
        ids=(_list_of(RequestId, batch, description="Points that are there.") | None, None),
        k=(_up_to(limits.k, "10, without a radius.") | None, None),
        limit=(_up_to(limits.k, "Of neighbours within the radius.") | None, None),
        rerank=(_up_to(limits.candidates, ordered) | None, None),
        filter=(chosen | None, None),
    )
    return Requests(upsert, delete, encode, queries)


def _limited(model: type[Body], **fields: Any) -> type[Body]:
    return create_model(model.__name__, __base__=model, __doc__=model.__doc__, **fields)


def _list_of(kind: Any, most: int, least: int = 1, **more: Any) -> Any:
    """Return the type of lists of `least` to `most` items."""
    return Annotated[list[kind], Field(min_length=least, max_length=most, fail_fast=True, **more)]


def _up_to(most: int, description: str) -> Any:
    return Annotated[int, Field(strict=True, ge=1, le=most, description=description)]


class Hit(BaseModel):
    id: JsonId
    distance: float
    payload: dict[str, Any] | None = None


class Hits(BaseModel):
    hits: list[Hit]
    cut: Annotated[bool, Field(description="Whether the limit left out some within the radius.")]


class Answer(BaseModel):
    by: Annotated[
        str, Field(description="The distance: hamming, outputs, tables, euclidean or cosine.")
    ]
    candidates: Annotated[
        int | None,
        Field(
            description="Points per query, nearest by code, that were ordered by outputs or "
            "tables; missing where all were, as a store of sqlite does."
        ),
    ] = None
    results: Annotated[list[Hits], Field(description="One per query, nearest first, ties by id.")]

    model_config = _shown(
        {
            "by": "hamming",
            "results": [
                {
                    "hits": [
                        {"id": 7, "distance": 0, "payload": {"year": 2016}},
                        {"id": 12, "distance": 3, "payload": {"year": 1998}},
                    ],
                    "cut": False,
                }
            ],
        }
    )


class TakenPoint(BaseModel):
    id: JsonId
    code: str
    vector: list[float] | None
    payload: dict[str, Any] | None

    model_config = _shown(
        {"id": 7, "code": "ff00ff00", "vector": [0.5, -1.0, 2.0], "payload": {"year": 2016}}
    )


class Count(BaseModel):
    count: Annotated[int, Field(ge=0)]

    model_config = _shown({"count": 200000})


class Info(BaseModel):
    name: str
    version: str
    store: Annotated[str, Field(description="The engine.")]
    points: Annotated[int, Field(ge=0)]
    ids: Annotated[
        Literal["number", "text"] | None,
        Field(description="Kind of the points' ids; null while there are no points."),
    ]
    n_bits: int
    n_features: Annotated[int | None, Field(description="Of vectors; null without a model.")]
    n_query_features: Annotated[
        int | None, Field(description="The same of vectors that are queries.")
    ]
    model: Annotated[str | None, Field(description="Fingerprint of the model.")]
    made_by: Annotated[
        str | None, Field(description="Fingerprint of the model of the codes; null if unknown.")
    ]
    learnt: Annotated[
        dict[str, Any] | None,
        Field(description="Method, points and digest of the data of the model in use, if known."),
    ]
    by: Annotated[list[str], Field(description="Distances that queries can ask for.")]
    drift: Annotated[
        dict[str, Any] | None,
        Field(description="Recall of points that came in, beside what the model promises of it."),
    ]
    images: Annotated[bool, Field(description="Whether points and queries may be images.")]
    keeps_points: Annotated[bool, Field(description="Whether vectors and payloads are kept.")]
    limits: dict[str, int]

    model_config = _shown(
        {
            "name": "auxhash",
            "version": "0.1.0",
            "store": "sqlite",
            "points": 200000,
            "ids": "number",
            "n_bits": 32,
            "n_features": 384,
            "n_query_features": 384,
            "model": "0123456789abcdef",
            "made_by": "0123456789abcdef",
            "learnt": {"method": "NeighborHash", "points": 100000},
            "by": ["hamming", "outputs", "tables"],
            "drift": {
                "points": 1000,
                "by": "tables",
                "expected": 0.81,
                "now": 0.79,
                "lower": False,
            },
            "images": False,
            "keeps_points": True,
            "limits": {"batch": 1000, "k": 1000},
        }
    )


class Health(BaseModel):
    status: str

    model_config = _shown({"status": "ready"})


class Trouble(BaseModel):
    """Body of every response of 4xx and 5xx."""

    error: str
    id: Annotated[str | None, Field(description="Of a fault, in the service's log.")] = None

    model_config = _shown({"error": "k: Input should be less than or equal to 1000"})
