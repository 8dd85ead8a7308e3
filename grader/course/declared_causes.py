"""Which checks have the causes of others' failures, as `pytest.mark.because` declares it."""

from collections.abc import Iterator, Mapping, Sequence

from grader.course.toml_file import listing, remedy
from grader.domain.assignment import CheckSpec
from grader.domain.errors import CourseError


def causes_first(specs: Sequence[CheckSpec], places: Mapping[str, str]) -> tuple[CheckSpec, ...]:
    """The checks in their order, but each behind those that it names as its causes.

    Args:
        specs: In the order of their files and lines.
        places: Check -> where it is declared, for messages.

    Raises:
        CourseError: A check names one that is not there, that judges something else, or that names it in
            turn.
    """
    known = {spec.id: spec for spec in specs}
    for spec in specs:
        _require_known(spec, known, places[spec.id])
    ordered: dict[str, CheckSpec] = {}
    for spec in specs:
        ordered |= {each.id: each for each in _behind_causes(spec, known, places, ())}
    return tuple(ordered.values())


def _require_known(spec: CheckSpec, known: Mapping[str, CheckSpec], place: str) -> None:
    for name in spec.because:
        says = f"{place}: test_{spec.id} names '{name}' as its cause"
        cause = known.get(name)
        if cause is None:
            same = [check.id for check in known.values() if check.component == spec.component]
            same.remove(spec.id)
            advice = remedy(
                name, same, f"{spec.component} has {listing(same)}." if same else "Remove the mark."
            )
            raise CourseError(f"{says}, and there is no such check. {advice}")
        if cause.component != spec.component:
            raise CourseError(
                f"{says}, which judges {cause.component}. Name one that judges {spec.component}, too."
            )


def _behind_causes(
    spec: CheckSpec, known: Mapping[str, CheckSpec], places: Mapping[str, str], above: tuple[str, ...]
) -> Iterator[CheckSpec]:
    """The check, behind all that it names, directly or not.

    Args:
        above: The checks by which it was come to, each named by the one before.
    """
    if spec.id in above:
        circle = [f"'{check}'" for check in (*above[above.index(spec.id) :], spec.id)]
        raise CourseError(
            f"{places[spec.id]}: {' because of '.join(circle)}: the causes go around in a circle. "
            "Remove one of these marks."
        )
    for name in spec.because:
        yield from _behind_causes(known[name], known, places, (*above, spec.id))
    yield spec
