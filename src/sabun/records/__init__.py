"""The only door in: public schemas and bounds, private tables from arrays, frames and files.

Nothing is inferred from the data, and no cell can raise: see README.md beside this file.
"""

from sabun.records.columns import CategoryColumn, Column, NumberColumn
from sabun.records.databases import DatabaseTable
from sabun.records.files import FilePart, row_groups, table_files
from sabun.records.forms import FileFormat
from sabun.records.inspection import ColumnFit, TableFit, inspect_table
from sabun.records.persons import Persons, persons
from sabun.records.schema import Schema
from sabun.records.sources import CHUNK_ROWS, Chunks, Source, chunks, has_names, open_source, open_unbounded, read

__all__ = [
    "CHUNK_ROWS",
    "CategoryColumn",
    "Chunks",
    "Column",
    "ColumnFit",
    "DatabaseTable",
    "FileFormat",
    "FilePart",
    "NumberColumn",
    "Persons",
    "Schema",
    "Source",
    "TableFit",
    "chunks",
    "has_names",
    "inspect_table",
    "open_source",
    "open_unbounded",
    "persons",
    "read",
    "row_groups",
    "table_files",
]
