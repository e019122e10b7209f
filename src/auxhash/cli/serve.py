"""serve: a model and a store behind HTTP, with a page."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from auxhash.cli.options import any_model_option, jobs_option, json_option, own_feature_option
from auxhash.cli.output import as_json, show
from auxhash.compute.extras import install

if TYPE_CHECKING:
    from auxhash.experiments.demonstration.show import Show
    from auxhash.serve.limits import Limits
    from auxhash.serve.service import Service

TOKEN_NAME = "AUXHASH_TOKEN"
MIN_TOKEN = 16  # characters of a token
REQUIRED_MODULES = ("fastapi", "fastapi_offline", "uvicorn", "prometheus_client", "PIL")


@click.command()
@click.argument("folder", required=False)
@click.option("--model", metavar="FILE", help="The model that encodes vectors and images.")
@click.option("--store", metavar="URL", help="The store of codes; made if it is not there.")
@click.option(
    "--bits", type=click.IntRange(1), help="Bits of the codes in a new STORE without --model."
)
@click.option(
    "--old-model",
    metavar="FILE",
    help="The model of the codes in the store, until they are encoded again by MODEL.",
)
@click.option(
    "--query-model",
    metavar="FILE",
    help="The model that encodes vectors of queries, if they are of another kind: one that "
    "`auxhash fit-queries` learnt for the codes of MODEL.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True)
@click.option(
    "--token-file",
    metavar="FILE",
    help=f"A file with the token that clients must send; or the variable {TOKEN_NAME}.",
)
@click.option("--open/--no-open", "browse", default=None, help="Whether to open the page.")
@click.option("--batch", type=int, help="Points or queries in one request, at most.")
@click.option("-k", "most_k", type=int, help="Neighbours per query, at most.")
@click.option("--body", type=int, help="Bytes of a request, at most.")
@click.option("--pixels", type=int, help="Pixels of an image, at most.")
@click.option("--workers", type=int, help="Requests that are worked on at once.")
@click.option("--rate", type=float, help="Requests per second and client; 0 is no limit.")
@click.option("--seconds", type=float, help="Time for a request to arrive.")
@click.option("--proxies", metavar="ADDRESSES", help="Whose X-Forwarded-For is to be believed.")
@click.option("--log-requests", is_flag=True, help="Log each request on stderr.")
@any_model_option
@own_feature_option
@jobs_option
@json_option
def serve(
    folder: str | None,
    model: str | None,
    store: str | None,
    bits: int | None,
    old_model: str | None,
    query_model: str | None,
    host: str,
    port: int,
    token_file: str | None,
    browse: bool | None,
    proxies: str | None,
    log_requests: bool,
    any_model: bool,
    own: str | None,
    **limits: Any,
) -> None:
    """Serve a FOLDER of `auxhash build`, or a MODEL and a STORE, over HTTP, with a page.

    Without any of them, handwritten digits are learnt once and served. With --store alone, there
    are only codes. It listens to this machine; any other --host demands a token. /docs
    shows and tries all requests. Ctrl-C finishes what was accepted, and stops. Needs
    auxhash[serve].

    \b
    Examples:
      auxhash serve
      auxhash serve --model model.safetensors --store sqlite:///items.db --port 0
      auxhash serve --store sqlite:///new.db --bits 64
      auxhash serve --model model.safetensors --store sqlite:///a.db --query-model asker.safetensors
    """
    _check_installed()
    from auxhash.serve import app, server

    if folder is not None:
        if model is not None or store is not None:
            raise click.UsageError("FOLDER has a model and a store: leave out --model and --store")
        from auxhash.cli.build import served_files

        model, store = served_files(folder)
    if model is not None and store is None:
        raise click.UsageError("--model needs the --store of its codes")
    if bits is not None and (store is None or model is not None):
        raise click.UsageError("--bits is for a --store without --model, which says how many")
    if old_model is not None and model is None:
        raise click.UsageError("--old-model is the one before --model: give both")
    if query_model is not None and model is None:
        raise click.UsageError("--query-model asks the codes of --model: give both")
    most = _limits(limits)
    token = _token(token_file)
    if token is None and not server.is_loopback(host):
        raise ValueError(
            f"--host {host} can be reached from other machines: give --token-file or {TOKEN_NAME}"
        )
    from auxhash.experiments.demonstration.show import router

    page = router(_show() if store is None else None)

    def opened() -> "Service":
        if store is None:
            from auxhash.experiments.demonstration import digits

            return digits.service(most)
        from auxhash.serve import start
        from auxhash.stores import NoStoreError

        try:
            return start.service(store, model, most, own, old_model, any_model, bits, query_model)
        except NoStoreError as error:
            reason = str(error).partition(";")[0]
            raise ValueError(f"{reason}: --model or --bits would make one") from error

    application, work = app.make(opened, most, token, page)
    with server.listen(host, port) as at:
        place, number = at.getsockname()[:2]
        url = f"http://{f'[{place}]' if ':' in place else place}:{number}/"
        result = {"url": url, "store": store, "model": model, "token": token is not None}
        show(result, f"{url} (Ctrl-C stops it)")
        if browse or (browse is None and store is None and _watched()):
            click.launch(url)
        server.run(application, work, at, most, proxies, log_requests)


def _show() -> "Show":
    """Learn what the page shows of the digits, once; it is kept."""
    from auxhash.experiments.demonstration.show import Show

    click.echo("Handwritten digits: learnt the first time, in half a minute or so.", err=True)
    return Show.digits()


def _watched() -> bool:
    import sys

    return not as_json() and sys.stdout.isatty()


def _limits(options: dict[str, Any]) -> "Limits":
    from auxhash.serve.limits import Limits

    options["k"] = options.pop("most_k")
    return Limits(**{name: value for name, value in options.items() if value is not None})


def _token(path: str | None) -> str | None:
    """The token from the file or the environment; its value is in no message."""
    token = os.environ.get(TOKEN_NAME) if path is None else Path(path).read_text("utf-8")
    if token is None:
        return None
    token, source = token.strip(), path or TOKEN_NAME
    if len(token) < MIN_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError(
            f"the token in {source} must be at least {MIN_TOKEN} characters of ASCII without spaces"
        )
    return token


def _check_installed() -> None:
    missing = [name for name in REQUIRED_MODULES if not _is_installed(name)]
    if missing:
        raise ImportError(f"serve needs {missing[0]}: {install('serve')}")


def _is_installed(name: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(name) is not None
    except ValueError:  # that it was tried before, and is not there
        return False
