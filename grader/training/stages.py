"""Stages of a training, from what the worker that trains tells of each epoch."""

import math
from collections.abc import Iterable
from dataclasses import replace

from grader.domain.plan import Stage
from grader.domain.program import Place, Program, line_at, place_of
from grader.protocol.plain_values import MAX_NUMBER
from grader.protocol.replies import EpochDone

MOST_STAGES = 50
NAME_LENGTH = 40  # characters of a class's name


def stages(epochs: Iterable[EpochDone], program: Program) -> tuple[Stage, ...]:
    """The stages that epochs form; what the worker tells is believed as far as the source has it."""
    found: list[Stage] = []
    for done in epochs:
        stage = _stage(done, program)
        if found and _is_same(found[-1], stage):
            found[-1] = replace(
                found[-1],
                epochs=found[-1].epochs + 1,
                last_rate=stage.last_rate,
                per_batch=found[-1].per_batch or stage.per_batch,
            )
        elif len(found) < MOST_STAGES:
            found.append(stage)
    return tuple(found)


def _stage(done: EpochDone, program: Program) -> Stage:
    loops = program.script.loops
    rate = done.learning_rate if math.isfinite(done.learning_rate) else 0.0
    return Stage(
        loop=loops[done.loop].place if 0 <= done.loop < len(loops) else None,
        called=_place(done.called, program),
        optimizer=_name(done.optimizer),
        schedule=_name(done.scheduler),
        learned=max(min(done.learned, MAX_NUMBER), 0),
        epochs=1,
        first_rate=rate,
        last_rate=rate,
        per_batch=done.per_batch,
    )


def _is_same(stage: Stage, other: Stage) -> bool:
    return _kind(stage) == _kind(other)


def _kind(stage: Stage) -> tuple[object, ...]:
    return stage.loop, stage.called, stage.optimizer, stage.schedule, stage.learned


def _place(where: str, program: Program) -> Place | None:
    """A place that a worker names, if the source has such a line."""
    place = place_of(where)
    return place if place is not None and line_at(program.source, place) is not None else None


def _name(name: str) -> str:
    return name[:NAME_LENGTH] if name.isidentifier() else ""
