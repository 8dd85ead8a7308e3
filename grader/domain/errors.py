"""Everything that the grader itself raises: one tree.

GraderException
├── GraderError             it reaches a person, by whose task it is to fix it
│   ├── CourseError         the instructor: a course file, a check, a data set
│   ├── SubmissionError     the student: a file that cannot be read or graded
│   ├── UsageError          the operator: a wrong path, a missing option
│   │   ├── ReadOnlyBook    the gradebook may only be read
│   │   ├── MarkRefused     marks are wrong, each with a reason
│   │   ├── Conflict        somebody else saved a mark since the page was drawn
│   │   ├── WouldLower      a mark would lower a grade that was released
│   │   ├── UnknownTask     there is no such submission to mark, or no such question
│   │   ├── ItemsChanged    somebody else changed the rubric items since they were read
│   │   ├── LinkRefused     a link into the console opens nothing
│   │   ├── StudentLinkRefused  a student's link to the own pages opens nothing
│   │   ├── PageNotReleased     a student asks for a page that was not released to this student
│   │   ├── AskingRefused       a student asks again where the course does not take it
│   │   ├── LmsUnavailable  an LMS takes nothing more from us
│   │   └── NoAssignmentFound   no folder that a course handed out is where one is looked for
│   └── EngineError         us
│       ├── OutOfPatienceError  the judge computed for too long on what a submission answered
│       ├── BusyMachineError    other programs kept the machine busy until the time was up
│       └── SandboxError    the machine does not give the isolation that was asked for
└── Interruption            it reaches a caller in the grader, who knows what follows from it
    ├── Mismatch            a check: the student's code does something else than it should
    ├── Undecided           a check: a person must look
    ├── UnreadableWeights   a check: these weights are not projections
    ├── WorkerFault         the worker hung, died or talked nonsense: the student's
    ├── StudentRaised       the worker says that the student's code raised
    ├── Unanswered          a warm process on a student's machine did not answer to the end
    ├── _Stopped            a warm process on a student's machine is to end
    ├── NoAnswer            a process that was asked did not answer
    ├── StudentRefused      an LMS refuses what was sent for one student
    ├── ReplyLost           an LMS did not say whether it did what it was asked
    ├── _MoodleError        Moodle answers with an error
    ├── ProtocolError       the other side sent what is not a frame
    │   └── ClosedError     it is gone
    ├── StudentFault        in the worker: the student's code raised
    ├── RecipeError         in the worker: the source does not say how to train
    ├── NothingThereError   in the worker: the student's code computes with what is left out of a training
    ├── SeenError           in the worker: what the student's code made is not what it should be
    ├── UnusableGpuError    in the worker: PyTorch cannot use the GPU
    ├── RefusedCallError    in the worker: a fake has no answer
    ├── TooMuchError        packing: a value is more than a tree may be
    ├── NoAnswers           a training: what came is not the model's outputs
    ├── OtherModel          a training: the weights are another model's
    ├── BuiltOnceOnly       a training: the model cannot be built again
    ├── NotUsable           a training: what is called gives something else than is needed
    ├── _EnoughSeen         an estimate: how long epochs take is known
    ├── Unknown             the analysis: a value cannot be read off the source
    ├── _NonsenseError      unpacking: what reads an archive says what it cannot say
    ├── _LayersAreLost      a host: bubblewrap takes layers away
    ├── NodeLost            a cluster: the node that was asked is gone, or its process
    ├── NodeUnready         a cluster: the node has left the run, or never joined it
    └── NodeBusy            a cluster: the node is at work on another run

Beside it stand only the errors of the command line, which click demands. A Mismatch is an AssertionError,
too, for pytest. Every message of a GraderError says where, what is wrong and what to do, in one sentence or
two, and is shown to a person as it stands.
"""


class GraderException(Exception):
    """Anything that the grader itself raises."""


class GraderError(GraderException):
    """Any error whose message is written for a person."""


class CourseError(GraderError):
    """The course is at fault: assignment.toml, a check, a data set. The instructor fixes it."""


class SubmissionError(GraderError):
    """A submitted file is at fault. The student fixes it."""


class UsageError(GraderError):
    """The command was given something that it cannot work with. The operator fixes it."""


class ReadOnlyBook(UsageError):
    """Something was to be written to a gradebook that may only be read. Nothing was."""


class NoAssignmentFound(UsageError):
    """No assignment was named, and the searched places hold none, or several."""


class EngineError(GraderError):
    """The grader is at fault. Never costs a student a point."""


class SandboxError(EngineError):
    """The isolation that was asked for could not be set up. Nothing was executed."""


class Interruption(GraderException):
    """Work ended early in a way that its caller expects. If a person must know, the caller says so."""
