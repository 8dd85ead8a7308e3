"""A short-lived, locked-down process that opens what students handed in, and the trusted end that asks it.

`service` runs in that process; `client` asks it and believes no answer. Neither imports the other: what
both know is in `messages`.
"""
