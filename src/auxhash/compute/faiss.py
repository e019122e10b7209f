"""faiss, imported where it is needed."""

from typing import Any


def import_faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise ImportError("this needs faiss: pip install 'auxhash[faiss]'") from error
    return faiss
