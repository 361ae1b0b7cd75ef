"""Python source that grows line by line, with the names that it refers to.

Shared by the compilers of decoders and encoders; knows nothing of messages.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from struct import Struct as Layout
from typing import Any


class Source:
    """Lines of one function and the global namespace in which it will run."""

    def __init__(self, **namespace: object) -> None:
        self.namespace: dict[str, Any] = dict(namespace)
        self._lines: list[str] = []
        self._indent = ""
        self._numbers: dict[str, int] = {}

    def line(self, text: str) -> None:
        """Add a line at the present indentation."""
        self._lines.append(f"{self._indent}{text}\n")

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        """Add a compound statement; what is added within is its body."""
        self.line(opening)
        self._indent += "    "
        yield
        self._indent = self._indent[:-4]

    def new_name(self, stem: str) -> str:
        """A local name that is used for nothing else."""
        number = self._numbers.get(stem, 0)
        self._numbers[stem] = number + 1
        return f"{stem}{number or ''}"

    def layout(self, codes: str, method: str) -> str:
        """The name of `pack` or `unpack_from` of the big-endian layout with these codes."""
        name = f"{method}_{codes.replace('?', 'B_')}"
        if name not in self.namespace:
            self.namespace[name] = getattr(Layout(f">{codes}"), method)
        return name

    def text(self) -> str:
        """The whole source."""
        return "".join(self._lines)

    def compile(self, function: str, title: str) -> Callable[..., Any]:
        """Run the source and return the function of that name."""
        exec(compile(self.text(), f"<{title}>", "exec"), self.namespace)
        compiled: Callable[..., Any] = self.namespace[function]
        return compiled
