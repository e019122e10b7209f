"""Names of the classes whose instances model files may hold."""

from collections.abc import Callable
from dataclasses import is_dataclass
from typing import TypeVar

Class = TypeVar("Class", bound=type)

CLASSES: dict[str, type] = {}


def register(name: str) -> Callable[[Class], Class]:
    """Decorate a frozen dataclass or a NamedTuple to let model files hold its instances.

    `name` is the name of the class in files, even if its module changes. The fields must be values
    that can be stored, and a field added later needs a default. If the class has a method
    `check_read`, it is called on every instance that is read, and must raise ValueError if a field
    is not valid. Fields named in a class attribute `UNSTORED` are not stored: whoever decodes gives
    them. Those in `TRAINING_ONLY` are stored, but decide no bit of a code that is computed: a
    model's fingerprint leaves them out.
    """

    def decorate(cls: Class) -> Class:
        if not (is_dataclass(cls) or hasattr(cls, "_fields")):
            raise TypeError(f"{cls.__name__} must be a dataclass or a NamedTuple to be registered")
        known = CLASSES.setdefault(name, cls)
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"{name!r} is registered already, for {known.__qualname__}")
        CLASSES[name] = cls
        return cls

    return decorate
