"""What the name of a file in a download tells, besides the student's own name for it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class HandedIn:
    """A file's or a folder's name, taken apart.

    Attributes:
        name: The student's own name for it; empty for a folder that the LMS made.
        holder: The LMS's label of who handed it in; None when no LMS put anything before the name.
        lms: `Moodle`, `Canvas`, `Gradescope`, or empty.
        person: The same in all files of one holder: the LMS's number, where the label holds one.
        number: That number, where it is a person's; empty for a team's, an anonym's and a submission's.
        called: The holder's name in the label; empty where it holds none.
        late: The LMS marks it late, without saying by how much.
        order: Rises from upload to upload where the LMS counts them; 0 where it does not.
    """

    name: str
    holder: str | None = None
    lms: str = ""
    person: str = ""
    number: str = ""
    called: str = ""
    late: bool = False
    order: int = 0
