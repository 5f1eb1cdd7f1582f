"""The device side of a key-value study, for people's own machines: the standard library and nothing else.

This folder imports nothing outside itself, so it can be copied to a device as it is.

Example:
    >>> from sabun.keyvalue.client import Client, Diary, Terms
    >>> terms = Terms(keys=("YouTube", "LINE"), epsilon=2, protocol="kv3")
    >>> report = Client(terms, diary=Diary.in_memory(), max_epsilon=2).report({"YouTube": 0.5})
"""

from __future__ import annotations

from .assignment import assigned_index, assigned_indices, new_credential, new_seed, report_id
from .classic import Harmony, RandomizedResponse
from .device import Client
from .diary import Diary
from .outbox import Outbox
from .probabilities import PROTOCOLS, Table, certified_epsilon, table_for
from .refusals import BudgetRefused, ClientError, DiaryError, ReportError, StudyRefused, UploadError
from .terms import Terms
from .upload import Uploader
from .wire import Report, from_json, pack, report_size, to_json, unpack

__all__ = [
    "PROTOCOLS",
    "BudgetRefused",
    "Client",
    "ClientError",
    "Diary",
    "DiaryError",
    "Harmony",
    "Outbox",
    "RandomizedResponse",
    "Report",
    "ReportError",
    "StudyRefused",
    "Table",
    "Terms",
    "UploadError",
    "Uploader",
    "assigned_index",
    "assigned_indices",
    "certified_epsilon",
    "from_json",
    "new_credential",
    "new_seed",
    "pack",
    "report_id",
    "report_size",
    "table_for",
    "to_json",
    "unpack",
]
