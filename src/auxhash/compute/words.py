"""Numbers in sentences, for messages and output."""

PLURALS = {"class": "classes", "query": "queries"}  # those that are not made by an s


def count(n: int, noun: str) -> str:
    """Return a number with its noun: 1 bit, 2 bits, 1 query, 2,000 queries."""
    return f"{n:,} {noun if n == 1 else PLURALS.get(noun, f'{noun}s')}"
