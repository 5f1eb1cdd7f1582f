"""What the pages of every server of ours share: their frame, their visitors, their language, and who is let in.

    request ─► Guard (own address, own pages) ─► handler ─► Visits (who is here, form tokens) ─► page (templates, marks)

Nothing here knows what a page is about. Pages load nothing from elsewhere and work without a script.
"""

from __future__ import annotations

from sabun.web.assets import Assets
from sabun.web.frame import Frame, Place, framed
from sabun.web.guard import Guard
from sabun.web.spoken import spoken
from sabun.web.visits import Visit, Visits

__all__ = ["Assets", "Frame", "Guard", "Place", "Visit", "Visits", "framed", "spoken"]
