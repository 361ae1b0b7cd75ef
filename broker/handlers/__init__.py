"""One module per API; importing them registers what this broker serves."""

import importlib
import pkgutil


def register_all() -> None:
    """Import every handler module beside this one."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
