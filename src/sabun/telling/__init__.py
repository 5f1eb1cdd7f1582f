"""How a result is told: words, stories, charts, reproductions, demo jobs; `terminal` is the shared half of the command line.

Rooms tell their own releases with these parts; pages and commands above them only put the parts together.
"""
