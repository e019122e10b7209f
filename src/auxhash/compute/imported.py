"""Objects of the user's own modules, by name."""

import os
import sys
from importlib import import_module
from typing import Any


def imported(name: str, role: str) -> Any:
    """The object that `name`, module:function, stands for; errors call it by its role."""
    module, _, function = name.partition(":")
    if not (module and function):
        raise ValueError(f"{role} is named module:function, got {name!r}")
    if os.getcwd() not in sys.path:  # where the module is likely to be
        sys.path.insert(0, os.getcwd())
    try:
        return getattr(import_module(module), function)
    except ImportError:
        raise
    except (Exception, SystemExit) as error:  # the module is the user's, and so is the fault
        if isinstance(error, AttributeError) and module in sys.modules:
            raise ValueError(f"module {module} has no function {function!r}") from error
        why = f"{type(error).__name__}: {error}"
        raise ValueError(f"module {module} cannot be imported: {why}") from error
