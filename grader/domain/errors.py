"""The errors, by whose task it is to mend them.

GraderError
├── CourseError       the instructor: a course file, a check, a data set
├── SubmissionError   the student: a file that cannot be read or graded
├── UsageError        the operator: a wrong path, a missing option
│   └── ReadOnlyBook  the gradebook may only be read
└── EngineError       us
    └── SandboxError  the machine does not give the isolation that was asked for

Every message says where, what is wrong and what to do, in one sentence or two, and is shown to a person
as it stands.
"""


class GraderError(Exception):
    """Any error whose message is written for a person."""


class CourseError(GraderError):
    """The course is at fault: assignment.toml, a check, a data set. The instructor mends it."""


class SubmissionError(GraderError):
    """A submitted file is at fault. The student mends it."""


class UsageError(GraderError):
    """The command was given something that it cannot work with. The operator mends it."""


class ReadOnlyBook(UsageError):
    """Something was to be kept in a gradebook that may only be read. Nothing was."""


class EngineError(GraderError):
    """The grader is at fault. Never costs a student a point."""


class SandboxError(EngineError):
    """The isolation that was asked for could not be set up. Nothing was executed."""
