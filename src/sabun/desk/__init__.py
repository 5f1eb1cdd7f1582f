"""`sabun desk`: a local page for people who do not like terminals.

    browser ─► Guard ─► pages ─► the command line, run in this process ─► report

The desk has no questions, options or formulas of its own. Forms are drawn from the options of the commands (`fields`), a plan
is what the command foretells before it charges (`errands`), an answer is what the command answers. Files are those of one
folder, by handles (`shelf`); who may come in is told by a file that only its owner reads (`entrance`).
"""

from __future__ import annotations
