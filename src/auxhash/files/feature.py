"""Names of the features of pictures, as model files hold them: "gist:SIDE" or "module:function"."""

GIST_SIDES = range(16, 65)  # in pixels, of the square pictures that GIST is computed on


def is_feature(name: str) -> bool:
    """Tell whether a text can be the name of a feature of pictures."""
    kind, _, rest = name.partition(":")
    if kind == "gist" and rest.isdecimal():
        return int(rest) in GIST_SIDES
    return all(part.isidentifier() for part in (*kind.split("."), rest))
