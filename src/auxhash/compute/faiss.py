"""faiss, imported where it is needed."""

from types import ModuleType

from auxhash.compute.extras import install


def import_faiss() -> ModuleType:
    try:
        import faiss
    except ImportError as error:
        raise ImportError(f"this needs faiss: {install('faiss')}") from error
    return faiss
