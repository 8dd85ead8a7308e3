"""The students' own pages: what was released to each, and regrade requests, on an origin of their own.

Nothing of the console is served here. Links, keys and cookies are separate from those of the console.
"""
