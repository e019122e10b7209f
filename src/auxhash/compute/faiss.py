"""faiss, imported where it is needed."""

from types import ModuleType


def import_faiss() -> ModuleType:
    try:
        import faiss
    except ImportError as error:
        raise ImportError("this needs faiss: pip install 'auxhash[faiss]'") from error
    return faiss
