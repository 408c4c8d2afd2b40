"""Progress of long work, on standard error and on a terminal only."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(text: str) -> Iterator[Callable[[str], None]]:
    """Show that work goes on.

    Args:
        text: what is being done first.
    Yields:
        A function that tells what is being done now; it does nothing where nobody watches.
    """
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(text)) as status:
        yield lambda text: status.update(Text(text))
