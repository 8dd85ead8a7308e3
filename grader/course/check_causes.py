"""Which checks are the causes of others, and the order that follows: each check comes after its causes.

A check names its causes itself (`because`), or others name it as something that they explain or show. All of
them judge the same component.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from grader.course.check_marks import AboutOthers
from grader.course.toml_file import listing, remedy
from grader.domain.assignment import CheckSpec
from grader.domain.errors import CourseError


def causes_first(
    specs: Sequence[CheckSpec], about_others: Mapping[str, AboutOthers], places: Mapping[str, str]
) -> tuple[CheckSpec, ...]:
    """The checks in their order, with all their causes, but each after those.

    Args:
        specs: In the order of their components, files and lines.
        about_others: Check -> what it says of others.
        places: Check -> where it is declared, for messages.

    Raises:
        CourseError: A check names one that does not exist, one of another component, itself, or one that
            names it in turn; or a public check names a cause that students do not have.
    """
    explained = _with_explained(specs, about_others, places)
    spec_by_id = {spec.id: spec for spec in explained}
    for spec in explained:
        for name in spec.because:
            claim = f"{places[spec.id]}: test_{spec.id} names '{name}' as its cause"
            _require_known(spec, name, spec_by_id, claim, "no such check")
    ordered: dict[str, CheckSpec] = {}
    for spec in explained:
        ordered |= {placed.id: placed for placed in _after_causes(spec, spec_by_id, places, ())}
    return tuple(ordered.values())


def _with_explained(
    specs: Sequence[CheckSpec], about_others: Mapping[str, AboutOthers], places: Mapping[str, str]
) -> tuple[CheckSpec, ...]:
    """The checks; to the causes that each names itself, the checks that explain or show it are added."""
    spec_by_id = {spec.id: spec for spec in specs}
    for spec in specs:
        for name in spec.because:
            if spec.public and name in spec_by_id and not spec_by_id[name].public:
                raise CourseError(
                    f"{places[spec.id]}: test_{spec.id} names '{name}' as its cause, which students do not "
                    "have. Name a public check."
                )
    causes: dict[str, list[str]] = {}
    shown_by: dict[str, list[str]] = {}
    for spec in specs:
        other_checks = {check: other for check, other in spec_by_id.items() if check != spec.id}
        said = about_others.get(spec.id, AboutOthers())
        for verb, names in (("explains", said.explains), ("shows", said.shows)):
            for name in names:
                claim = f"{places[spec.id]}: test_{spec.id} {verb} '{name}'"
                _require_known(spec, name, other_checks, claim, "no such other check")
                causes.setdefault(name, []).append(spec.id)
        for name in said.shows:
            shown_by.setdefault(name, []).append(spec.id)
    return tuple(
        replace(
            spec,
            because=tuple(dict.fromkeys((*spec.because, *causes.get(spec.id, ())))),
            shown_by=tuple(shown_by.get(spec.id, ())),
        )
        for spec in specs
    )


def _require_known(
    spec: CheckSpec, name: str, checks: Mapping[str, CheckSpec], claim: str, absent: str
) -> None:
    """Check that the name in a check's mark is a check of the same component.

    Args:
        checks: The checks that it may name.
        claim: The beginning of the message: who names what.
        absent: What the message calls a check that does not exist.
    """
    if name not in checks:
        same_component = [
            check.id for check in checks.values() if check.component == spec.component and check.id != spec.id
        ]
        advice = remedy(
            name,
            same_component,
            f"{spec.component} has {listing(same_component)}." if same_component else "Remove the mark.",
        )
        raise CourseError(f"{claim}, and there is {absent}. {advice}")
    if checks[name].component != spec.component:
        raise CourseError(
            f"{claim}, which judges {checks[name].component}. Name one that judges {spec.component}, too."
        )


def _after_causes(
    spec: CheckSpec, spec_by_id: Mapping[str, CheckSpec], places: Mapping[str, str], above: tuple[str, ...]
) -> Iterator[CheckSpec]:
    """The check, after all checks that it names, directly or indirectly.

    Args:
        above: The chain of checks that led here, each named by the one before.
    """
    if spec.id in above:
        circle = [f"'{check}'" for check in (*above[above.index(spec.id) :], spec.id)]
        raise CourseError(
            f"{places[spec.id]}: {' because of '.join(circle)}: the causes go around in a circle. "
            "Remove one of these marks."
        )
    for name in spec.because:
        yield from _after_causes(spec_by_id[name], spec_by_id, places, (*above, spec.id))
    yield spec
