"""What a report says beside the findings."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """A sentence about a submission.

    Attributes:
        ask_person: A person should look at what it is about.
    """

    text: str
    ask_person: bool = False

    def __str__(self) -> str:
        return self.text
