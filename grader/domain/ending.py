"""How a process ended, as the kernel says: never as the process itself does."""

from dataclasses import dataclass
from typing import Literal

EndingLimit = Literal["memory", "cpu", "file_size"]


@dataclass(frozen=True)
class Ending:
    """The end of a process that ran somebody's code.

    Attributes:
        words: It as a clause: `it was ended by signal 11`.
        limit: Which limit of ours ended it, where one did.
        memory_mb: The most memory that it held, beyond what it shares with its host, in 10**6 bytes; None
            where nobody measured it.
        near_memory: Its limit on memory is one that refuses memory, and ends nothing, and it held so much
            that a refusal was likely ours. Where the limit ends a process, what is refused is not our doing.
    """

    words: str
    limit: EndingLimit | None = None
    memory_mb: int | None = None
    near_memory: bool = False
