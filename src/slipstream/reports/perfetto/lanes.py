"""Slices of one track must nest: what crosses another one goes to a lane of its own."""

from collections.abc import Iterable, Iterator


def lanes(spans: Iterable[tuple[int, int]]) -> Iterator[int]:
    """The lane of each span, counted from 0.

    Args:
        spans: start and end in ns, by start and then the longest first.
    Returns:
        For each span the first lane in which it lies wholly inside or wholly outside of all others.
    """
    open_ends: list[list[int]] = []
    for start, end in spans:
        for ends in open_ends:
            while ends and ends[-1] <= start:
                ends.pop()
        fitting = (lane for lane, ends in enumerate(open_ends) if not ends or end <= ends[-1])
        lane = next(fitting, len(open_ends))
        if lane == len(open_ends):
            open_ends.append([])
        open_ends[lane].append(end)
        yield lane
