"""What a check in a notebook returns, and how a notebook shows it."""

import html
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from grader.domain.evidence import Blame, Finding, FindingKind, Status


@dataclass(frozen=True, repr=False)
class CheckResult:
    """What the public checks found out.

    Attributes:
        passed: Whether all that can be known is right, as for `grader check`: every check passes, nothing is
            used that is not allowed, and the training runs.
        findings: One per check; none where nothing could be checked.
        bundle: How it is shown, by MIME type.
        metadata: Of the output that shows it.
        shown_in: How many texts had been executed when it was shown by the check itself.
    """

    passed: bool
    findings: tuple[Finding, ...]
    bundle: Mapping[str, str] = field(compare=False)
    metadata: Mapping[str, bool] = field(default_factory=dict, compare=False)
    shown_in: int = field(default=0, compare=False)

    def __repr__(self) -> str:
        return self.bundle["text/plain"]

    def _repr_html_(self) -> str:
        return self.bundle["text/html"]

    def _ipython_display_(self) -> None:
        """Show it, but not again below the very check that has shown it."""
        shell = sys.modules["IPython"].get_ipython()
        if shell is None or len(executed_texts(shell)) != self.shown_in:
            from IPython.display import display

            display(dict(self.bundle), raw=True, metadata=dict(self.metadata))


def executed_texts(shell: Any) -> Sequence[str]:
    """What a shell was given, by the numbers that Jupyter shows: `In[1]` is the first, `In[0]` is none."""
    texts: Sequence[str] = shell.history_manager.input_hist_raw
    return texts


def result_of(answer: Mapping[str, Any], shown_in: int) -> CheckResult:
    """The result that the process which made the checks told at the end."""
    findings = tuple(_finding(fields) for fields in answer["findings"])
    return CheckResult(answer["passed"], findings, answer["shown"], answer["metadata"], shown_in)


def refused(sentence: str, shown_in: int = 0) -> CheckResult:
    """The result where nothing could be checked, which says why."""
    shown = {"text/plain": sentence, "text/html": f"<strong>{html.escape(sentence)}</strong>"}
    return CheckResult(False, (), shown, shown_in=shown_in)


def _finding(fields: Mapping[str, Any]) -> Finding:
    kinds = {"status": Status, "blame": Blame, "kind": FindingKind}
    typed = {
        name: kinds[name](value) if name in kinds and value is not None else value
        for name, value in fields.items()
    }
    return Finding(**cast("dict[str, Any]", typed))
