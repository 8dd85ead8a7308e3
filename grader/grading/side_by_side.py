"""The same work for many things, some of them at once."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def side_by_side(
    work: Callable[[Item], Outcome],
    items: Sequence[Item],
    jobs: int,
    *,
    report: Callable[[Outcome], object] = lambda outcome: None,
    interrupted: Callable[[], None] = lambda: None,
) -> list[Outcome]:
    """The outcomes in the order of the items.

    An exception in one, or an interruption, ends it: what has not begun is not begun, and what is under way
    is not waited for.

    Args:
        jobs: How many at once.
        report: Told each outcome as it is there.
        interrupted: Called first when it ends so, before anything under way can fail of what follows.
    """
    pool = ThreadPoolExecutor(max_workers=max(jobs, 1))
    try:
        futures = [pool.submit(work, item) for item in items]
        for future in as_completed(futures):
            report(future.result())
    except BaseException:
        interrupted()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
    return [future.result() for future in futures]
