"""The tables of a ledger on PostgreSQL, their guards, and whether they are still as they were made.

One ledger is one schema with three tables: `book` and `payloads` hold what a file would hold; `turn` is empty, and whoever
writes locks it. Its lock needs a right (UPDATE) that nobody but the owner has on the other two, for those are only appended to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from sabun.errors import LedgerError
from sabun.ledger.reservation import LARGEST_PAYLOAD

__all__ = ["GRANTS", "look", "must_be_whole", "statements"]

_LARGEST_RECORD = 16 * 2**20

GRANTS = {
    "analyst": ("SELECT, INSERT ON {0}.book, {0}.payloads", "SELECT, UPDATE ON {0}.turn"),
    "reader": ("SELECT ON {0}.book, {0}.payloads",),
}
"""What a role may do beside its USAGE of the schema; nobody gets UPDATE, DELETE or TRUNCATE on rows."""

# PostgreSQL has no word for the NUL character, which may stand in somebody's purpose: it is taken out before a record is read.
_FOLLOWS = r"""
DECLARE
  said json := CASE WHEN strpos(NEW.record, '\u0000') = 0 THEN NEW.record
    ELSE regexp_replace(NEW.record, '(?<!\\)((?:\\\\)*)\\u0000', '\1', 'g') END;
  head record;
BEGIN
  SELECT sequence, hash INTO head FROM {0}.book ORDER BY sequence DESC LIMIT 1;
  IF NEW.sequence IS DISTINCT FROM coalesce(head.sequence + 1, 0)
    OR (said -> 'previous')::text IS DISTINCT FROM '"' || coalesce(head.hash, repeat('0', 64)) || '"'
    OR (said -> 'sequence')::text IS DISTINCT FROM NEW.sequence::text
    OR (said -> 'entry')::text IS DISTINCT FROM NEW.entry::text
    OR (said -> 'key') #>> '{{}}' IS DISTINCT FROM NEW.key
    OR NEW.hash IS DISTINCT FROM encode(sha256(convert_to(NEW.record, 'UTF8')), 'hex')
  THEN RAISE EXCEPTION 'a row must follow the one before it';
  END IF;
  IF coalesce((said -> 'kind')::text, '') NOT IN ('"reserve"', '"commit"', '"void"')
    AND NOT pg_has_role((SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'MEMBER')
  THEN RAISE insufficient_privilege USING MESSAGE = 'only the owner of the ledger may change its terms';
  END IF;
"""
_KEEPS_TERMS = r"""
  IF NEW.sequence > 0 AND (said -> 'kind')::text <> '"change"' AND 1 < (
    SELECT count(DISTINCT json_build_array(told IS NULL, told -> 'limit', told -> 'delta', told -> 'shares',
        (SELECT json_agg(json_build_array(key, value -> 'part') ORDER BY key) FROM json_each(told -> 'accounts')))::text)
    FROM (SELECT said -> 'standing' AS told
      UNION ALL SELECT (CASE WHEN strpos(record, '\u0000') = 0 THEN record
          ELSE regexp_replace(record, '(?<!\\)((?:\\\\)*)\\u0000', '\1', 'g') END)::json -> 'standing'
        FROM {0}.book WHERE sequence = head.sequence) AS both_rows)
  THEN RAISE insufficient_privilege USING MESSAGE = 'a charge must leave the terms of the ledger as they are';
  END IF;
"""
_DONE = r"""
  RETURN NEW;
END
"""
_FUNCTIONS = {
    "follow": f"{_FOLLOWS.rstrip()}{_KEEPS_TERMS.rstrip()}{_DONE}",
    "belong": """
DECLARE
  digest text := '"payload_sha256":"' || encode(sha256(NEW.payload), 'hex') || '"';
BEGIN
  IF NOT EXISTS (SELECT FROM {0}.book WHERE entry = NEW.entry AND strpos(record, digest) > 0)
  THEN RAISE EXCEPTION 'a payload must be the one its row speaks of';
  END IF;
  RETURN NEW;
END
""",
    "keep": """
BEGIN
  RAISE EXCEPTION 'rows are never changed or deleted';
END
""",
}

_EARLIER = {"follow": f"{_FOLLOWS.rstrip()}{_DONE}"}
"""Guards as earlier versions made them: such a ledger still opens, with what they guard."""

_TABLES = (
    "CREATE TABLE {0}.book (sequence bigint PRIMARY KEY, entry bigint NOT NULL, key text, "
    f"record text NOT NULL CHECK (octet_length(record) <= {_LARGEST_RECORD}), hash text NOT NULL)",
    "CREATE TABLE {0}.payloads (entry bigint PRIMARY KEY, "
    f"payload bytea NOT NULL CHECK (octet_length(payload) <= {LARGEST_PAYLOAD}))",
    "CREATE TABLE {0}.turn ()",
    "CREATE INDEX book_by_entry ON {0}.book (entry)",
    "CREATE INDEX book_by_key ON {0}.book (key) WHERE key IS NOT NULL",
)
_TRIGGERS = (
    "CREATE TRIGGER book_follows BEFORE INSERT ON {0}.book FOR EACH ROW EXECUTE FUNCTION {0}.follow()",
    "CREATE TRIGGER book_keeps BEFORE DELETE OR UPDATE OR TRUNCATE ON {0}.book FOR EACH STATEMENT EXECUTE FUNCTION {0}.keep()",
    "CREATE TRIGGER payloads_belong BEFORE INSERT ON {0}.payloads FOR EACH ROW EXECUTE FUNCTION {0}.belong()",
    "CREATE TRIGGER payloads_keep BEFORE DELETE OR UPDATE OR TRUNCATE ON {0}.payloads "
    "FOR EACH STATEMENT EXECUTE FUNCTION {0}.keep()",
)

_FOUND = """
WITH mine AS MATERIALIZED (SELECT oid, relname AS name, relkind, concat_ws(' ', relkind, relname, relpersistence,
    relrowsecurity, relhasrules, relhassubclass, relispartition) AS line
  FROM pg_class WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = %(schema)s)),
tables AS MATERIALIZED (SELECT array_agg(oid) AS ids FROM mine WHERE relkind <> 'i')
SELECT line FROM mine WHERE relkind <> 'i'
UNION ALL SELECT concat_ws(' ', 'column', (SELECT name FROM mine WHERE oid = attrelid), attname,
    format_type(atttypid, atttypmod), attnotnull)
  FROM pg_attribute WHERE attrelid = ANY ((SELECT ids FROM tables)::oid[]) AND attnum > 0 AND NOT attisdropped
UNION ALL SELECT concat_ws(' ', 'index', (SELECT name FROM mine WHERE oid = indexrelid), indisunique, indisvalid, indisready,
    indkey, indnatts, indpred IS NULL, indexprs IS NULL)
  FROM pg_index WHERE indrelid = ANY ((SELECT ids FROM tables)::oid[])
UNION ALL SELECT concat_ws(' ', 'trigger', (SELECT name FROM mine WHERE oid = tgrelid), tgname, tgtype, tgenabled, tgnargs,
    tgattr, tgqual IS NULL, prosecdef, array_to_string(proconfig, ' '), encode(sha256(convert_to(prosrc, 'UTF8')), 'hex'))
  FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid WHERE tgrelid = ANY ((SELECT ids FROM tables)::oid[])
UNION ALL SELECT concat_ws(' ', 'constraint', (SELECT name FROM mine WHERE oid = conrelid), contype, conkey::text, convalidated)
  FROM pg_constraint WHERE conrelid = ANY ((SELECT ids FROM tables)::oid[]) AND contype <> 'n'
"""
_MADE = """
r book p f f f f
r payloads p f f f f
r turn p f f f f
column book sequence bigint t
column book entry bigint t
column book key text f
column book record text t
column book hash text t
column payloads entry bigint t
column payloads payload bytea t
index book_pkey t t t 1 1 t t
index payloads_pkey t t t 1 1 t t
index book_by_entry f t t 2 1 t t
index book_by_key f t t 3 1 f t
trigger book book_follows 7 O 0  t {follow}
trigger book book_keeps 58 O 0  t {keep}
trigger payloads payloads_belong 7 O 0  t {belong}
trigger payloads payloads_keep 58 O 0  t {keep}
constraint book p {{1}} t
constraint book c {{4}} t
constraint payloads p {{1}} t
constraint payloads c {{2}} t
"""
_SEARCH = "search_path=pg_catalog, pg_temp"


def statements(schema: str) -> Iterator[str]:
    """What makes the tables of a ledger in a schema that is there."""
    schema = f'"{schema}"'
    yield from (statement.format(schema) for statement in _TABLES)
    for name, body in _FUNCTIONS.items():
        text = body.format(schema)
        head = f"CREATE FUNCTION {schema}.{name}() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp"
        yield f"{head} AS $${text}$$"
    yield from (statement.format(schema) for statement in _TRIGGERS)


@cache
def _made(schema: str) -> tuple[frozenset[str], ...]:
    """The tables as this version makes them, and as earlier ones did."""
    return tuple(_with_guards(functions, schema) for functions in (_FUNCTIONS, _FUNCTIONS | _EARLIER))


def _with_guards(functions: Mapping[str, str], schema: str) -> frozenset[str]:
    digests = {name: hashlib.sha256(body.format(f'"{schema}"').encode()).hexdigest() for name, body in functions.items()}
    guards = {name: f"f {_SEARCH} {digest}" for name, digest in digests.items()}
    return frozenset(_MADE.strip().format(**guards).splitlines())


def look(connection: Any, schema: str) -> Any:
    """Asks for the tables as they are; the answer is for `must_be_whole`."""
    return connection.execute(_FOUND, {"schema": schema})


def must_be_whole(answer: Any, schema: str, place: str) -> None:
    """Refuses a ledger whose tables or guards were changed: a trigger more could take back each row as it is written.

    Raises:
        LedgerError: There is no ledger, or it is not as it was made.
    """
    found = [line for (line,) in answer.fetchall()]
    if any(len(found) == len(made) and set(found) == made for made in _made(schema)):
        return
    if not any(line.startswith("r book ") for line in found):
        what = "there is no ledger at" if not found else "there is no Sabun ledger, but something else, at"
        raise LedgerError(f"{what} {place}. Make one first, or check the address.")
    raise LedgerError(
        f"{place}: the tables of the ledger were changed by another program. Do not release from it; restore it from a backup."
    )
