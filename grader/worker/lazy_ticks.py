"""Ticks that are made when somebody asks for them: a grid of images with hidden axes then makes none.

Matplotlib means to do so: the lists of an axis' ticks are lazy, since making ticks is slow. But setting the
clip path, or the grid, of new axes asks for all of them, which takes half the time of making the axes. Here
both are noted for later. A figure looks the same: a tick is made with the parameters, the clip path and the
settings (`rcParams`) that it would have had.

It decides nothing about a figure, and does nothing where matplotlib has no such lists.

Tests: tests/worker/test_lazy_ticks.py
"""

import contextlib
from collections.abc import Iterator
from typing import Any

LISTS = ("majorTicks", "minorTicks")
CLIP_PATH, SETTINGS = "_grader_clip_path", "_grader_settings"  # attributes of an axis whose ticks come later
SIDES = ("left", "right", "bottom", "top")
AT_THE_EDGE = ("outward", 0.0)  # the position of a spine that was given none
NOT_STYLE = {"backend", "interactive"}  # settings that no tick has


@contextlib.contextmanager
def lazy_ticks() -> Iterator[None]:
    """Make no tick before it is needed, for as long as the block runs."""
    from matplotlib import axis as axes_module
    from matplotlib.axis import Axis

    lazy: Any = getattr(axes_module, "_LazyTickList", None)
    if lazy is None or not all(isinstance(vars(Axis).get(name), lazy) for name in LISTS):
        yield
        return

    class LaterTicks(lazy):  # type: ignore[misc]
        """A lazy list of ticks whose first has what was noted for it."""

        def __get__(self, axis: Any, owner: Any) -> Any:
            if axis is None:
                return self
            with _settings(getattr(axis, SETTINGS, None)):
                ticks = super().__get__(axis, owner)
            if noted := getattr(axis, CLIP_PATH, None):
                for tick in ticks:
                    tick.set_clip_path(*noted)
            return ticks

    set_tick_params, set_clip_path = Axis.set_tick_params, Axis.set_clip_path
    latest: list[Any] = []

    def note_settings(axis: Any) -> None:
        nonlocal latest
        now = _current_settings()
        latest = latest if latest == now else now  # one list serves all axes that are made alike
        setattr(axis, SETTINGS, latest)

    def later_tick_params(axis: Any, *args: Any, **kwargs: Any) -> None:
        with _unmade(axis) as absent:
            if absent and not hasattr(axis, SETTINGS):
                note_settings(axis)
            set_tick_params(axis, *args, **kwargs)

    def later_clip_path(axis: Any, path: Any, transform: Any = None) -> None:
        setattr(axis, CLIP_PATH, (path, transform))
        with _unmade(axis) as absent:
            set_clip_path(axis, path, transform)
        if absent:
            _place_spines(axis)

    originals = {name: vars(Axis)[name] for name in LISTS}
    changed: Any = Axis
    changed.majorTicks, changed.minorTicks = LaterTicks(major=True), LaterTicks(major=False)
    changed.set_tick_params, changed.set_clip_path = later_tick_params, later_clip_path
    try:
        yield
    finally:
        changed.set_tick_params, changed.set_clip_path = set_tick_params, set_clip_path
        for name, original in originals.items():
            setattr(Axis, name, original)


@contextlib.contextmanager
def _unmade(axis: Any) -> Iterator[list[str]]:
    """Keep the ticks that an axis lacks from being made; gives the names of their lists."""
    held = vars(axis)
    absent = [name for name in LISTS if name not in held]
    held.update({name: [] for name in absent})
    try:
        yield absent
    finally:
        for name in absent:
            if held.get(name) == []:
                del held[name]


def _place_spines(axis: Any) -> None:
    """Do what making a tick does besides: the spines of its axes get their places, also if none is drawn."""
    for side, spine in getattr(axis.axes, "spines", {}).items():
        if side not in SIDES:
            continue
        if getattr(spine, "_position", AT_THE_EDGE) is None and _has_no_ticks(spine.axis):
            # matplotlib would begin the ticks of the spine's axis again, which are not there yet
            spine._position = AT_THE_EDGE
            spine.set_transform(spine.get_spine_transform())
        else:
            spine.get_spine_transform()


def _has_no_ticks(axis: Any) -> bool:
    return axis is not None and not any(vars(axis).get(name) for name in LISTS)


def _current_settings() -> list[Any]:
    """The values of matplotlib's settings, in the order of their names: 50 times faster than a copy."""
    import matplotlib

    return list(dict.values(matplotlib.rcParams))


@contextlib.contextmanager
def _settings(noted: list[Any] | None) -> Iterator[None]:
    """Matplotlib's settings as they were noted, if they differ now (`plt.style.context` has ended)."""
    import matplotlib

    now = _current_settings()
    if noted is None or noted == now:
        yield
        return
    names = dict.keys(matplotlib.rcParams)
    differing = {
        name: then
        for name, then, value in zip(names, noted, now, strict=True)
        if then != value and name not in NOT_STYLE
    }
    with matplotlib.rc_context(differing):
        yield
