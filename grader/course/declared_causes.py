"""Which checks have the causes of others' failures, as `pytest.mark.because` and `explains` declare it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from grader.course.toml_file import listing, remedy
from grader.domain.assignment import CheckSpec
from grader.domain.errors import CourseError


def with_explained(
    specs: Sequence[CheckSpec], explained: Mapping[str, tuple[str, ...]], places: Mapping[str, str]
) -> tuple[CheckSpec, ...]:
    """The checks, each with those that explain its failure behind the causes that it names itself.

    Args:
        explained: Check -> those that it says it explains.
        places: Check -> where it is declared, for messages.

    Raises:
        CourseError: A check explains one that is not there, that judges something else, or itself; or a
            public check names one as its cause that students lack.
    """
    known = {spec.id: spec for spec in specs}
    for spec in specs:
        for name in spec.because:
            if spec.public and name in known and not known[name].public:
                raise CourseError(
                    f"{places[spec.id]}: test_{spec.id} names '{name}' as its cause, which students do not "
                    f"have. Name one of {spec.file}."
                )
    causes: dict[str, list[str]] = {}
    for spec in specs:
        for name in explained.get(spec.id, ()):
            others = {check: each for check, each in known.items() if check != spec.id}
            says = f"{places[spec.id]}: test_{spec.id} explains '{name}'"
            _require_known(spec, name, others, says, "no such other check")
            causes.setdefault(name, []).append(spec.id)
    return tuple(
        replace(spec, because=tuple(dict.fromkeys((*spec.because, *causes.get(spec.id, ())))))
        for spec in specs
    )


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
        for name in spec.because:
            says = f"{places[spec.id]}: test_{spec.id} names '{name}' as its cause"
            _require_known(spec, name, known, says, "no such check")
    ordered: dict[str, CheckSpec] = {}
    for spec in specs:
        ordered |= {each.id: each for each in _behind_causes(spec, known, places, ())}
    return tuple(ordered.values())


def _require_known(
    spec: CheckSpec, name: str, known: Mapping[str, CheckSpec], says: str, missing: str
) -> None:
    """Check that what a check names is a check of the same component.

    Args:
        known: Those that it may name.
        says: The beginning of the sentence: who names what.
        missing: How one that is not there is called.
    """
    if name not in known:
        own = [each.id for each in known.values() if each.component == spec.component and each.id != spec.id]
        advice = remedy(name, own, f"{spec.component} has {listing(own)}." if own else "Remove the mark.")
        raise CourseError(f"{says}, and there is {missing}. {advice}")
    if known[name].component != spec.component:
        raise CourseError(
            f"{says}, which judges {known[name].component}. Name one that judges {spec.component}, too."
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
