"""What does ``import etl`` offer?

Nothing but the version until it is asked for more: the package root imports no engine, so that ``sessionmart --help``
and a worker that only parses start at once. What is offered here is imported when it is first used.
"""

from __future__ import annotations

__version__: str


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("sessionmart")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
