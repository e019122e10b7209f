"""Extras: the optional parts of the package, and the command that installs one."""


def install(extra: str) -> str:
    """Return the command that installs an extra, from the index or checkout of the package."""
    import json  # all of these here: this is for an error
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:  # pip notes the folder of a checkout, and nothing of an index
        noted = json.loads(distribution("auxhash").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        noted = {}
    if "dir_info" not in noted:
        return f"pip install 'auxhash[{extra}]'"
    editable = "-e " if noted["dir_info"].get("editable") else ""
    return f"pip install {editable}'{url2pathname(urlsplit(noted['url']).path)}[{extra}]'"
