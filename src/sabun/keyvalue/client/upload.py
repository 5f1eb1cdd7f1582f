"""From the outbox to a collector, and the enrolment there: again and again until it is said to be kept, with pauses.

A collector answers once what it was sent is durable; an answer that is cut off is none. A report counts once however often it
comes, so sending it again is always right.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, final
from urllib.parse import urlsplit

from .outbox import Outbox
from .refusals import ClientError, UploadError, require
from .terms import Terms

__all__ = ["RoundState", "Sent", "Uploader", "credential_of"]

_AWAY = (0, 408, 425, 429, 502, 503, 504)  # nobody there, or busy, for whatever else is to be sent too
_AGAIN = (*_AWAY, 500)
_TOO_LARGE = 413
_MOST_REPORTS = 1000
_MOST_BYTES = 1 << 19  # half of what a collector takes at once unless told otherwise
_LARGEST_ANSWER = 1 << 28
_COIN = secrets.SystemRandom()
_T = TypeVar("_T")


@final
@dataclass(frozen=True, kw_only=True)
class Sent:
    """What became of the reports that were sent.

    Attributes:
        accepted: How many count from now on.
        duplicate: How many counted before.
        rejected: Those that do not count, with the collector's reason; of these, `early` ones wait on.
    """

    accepted: int
    duplicate: int
    rejected: tuple[tuple[bytes, str], ...]


@final
@dataclass(frozen=True, kw_only=True)
class RoundState:
    """How a round stands.

    Attributes:
        state: `waiting`, `open`, `closed`, `frozen` or `purged`.
        means: What PrivKVM's later rounds are to be reported with, by key; otherwise None.
        seed: The revealed seed of a study with a commitment; otherwise empty.
    """

    state: str
    means: dict[str | int, float] | None
    seed: bytes


def credential_of(terms: Terms, secret: bytes, nonce: bytes) -> bytes:
    """The credential of an enrolment, of a number each side drew before it knew the other's."""
    return hashlib.sha256(b"sabun credential\0" + terms.short_id + secret + nonce).digest()


@final
class Uploader:
    """The way to a collector somewhere on the network.

    Args:
        server: Its address.
        attempts: How often a request is sent at most.
        first_pause: Seconds; the limit of the first pause. It doubles from pause to pause, and a pause is any time up to it, so
            that many devices do not come back together.
        longest_pause: Seconds; no limit and no wish of the server's goes beyond.
        timeout: Seconds until a silent server is given up.
        wait: What pauses; for tests.

    Raises:
        ClientError: The address is no http or https address.

    Example:
        >>> import tempfile
        >>> uploader = Uploader("https://collector.example")
        >>> uploader.send(Outbox(tempfile.mkdtemp()))  # nothing waits: nothing is sent
        Sent(accepted=0, duplicate=0, rejected=())
    """

    def __init__(
        self,
        server: str,
        *,
        attempts: int = 8,
        first_pause: float = 0.5,
        longest_pause: float = 60.0,
        timeout: float = 30.0,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        split = urlsplit(server)
        good = split.scheme in ("http", "https") and bool(split.hostname)
        require(good, "server", "an address such as https://collector.example", server)
        self._base = f"{split.scheme}://{split.netloc}{split.path.rstrip('/')}"
        self._attempts, self._first, self._longest = attempts, first_pause, longest_pause
        self._timeout, self._wait = timeout, wait

    def study(self, task: str) -> Terms:
        """The terms of a study, by the id that was agreed on elsewhere (32 or 64 hex digits).

        Raises:
            UploadError: The server could not be reached, has no such study, or shows another.
        """
        hexadecimal = isinstance(task, str) and len(task) in (32, 64) and set(task) <= set("0123456789abcdef")
        require(hexadecimal, "task", "the id of a study in hex", task)
        terms = Terms.from_json(self._asked("GET", task[:32], lambda answer: answer.decode("ascii")))
        if not terms.task_id.startswith(task):
            raise UploadError("the server must show the study that was asked for; it showed another.", code="other-study")
        return terms

    def round(self, terms: Terms, number: int) -> RoundState:
        """How a round stands.

        Raises:
            UploadError: The server could not be reached, or has no such round.
        """
        said = self._asked("GET", f"{terms.short_id.hex()}/rounds/{number}", json.loads)
        feedback, seed = said.get("feedback"), said.get("seed")
        means = None if feedback is None else dict(zip(terms.keys, feedback, strict=True))
        return RoundState(state=said["state"], means=means, seed=bytes.fromhex(seed or ""))

    def enrol(self, terms: Terms, *, ticket: str, outbox: Outbox) -> bytes:
        """The credential a ticket gives, for `Client`; asking again gives the same one.

        The device promises a number of its own before it hears the server's, and keeps the server's before it reveals its own:
        neither can aim at a key. A server that refuses the reveal and then says another number, fitted to the one it heard, is
        refused for good. Each ticket has numbers of its own. A crash in between does no harm.

        Raises:
            UploadError: The server refuses the ticket, could not be reached, or aimed.
        """
        secret, path = outbox.promise(terms.task_id, ticket), f"{terms.short_id.hex()}/enrolment"
        promise = hashlib.sha256(secret).hexdigest()
        nonce = self._asked("POST", path, _field("nonce"), {"ticket": ticket, "promise": promise})
        if not hmac.compare_digest(nonce, outbox.nonce(terms.task_id, ticket, nonce)):
            raise UploadError("the nonce must be the one this ticket got first; it is another. Do not take part.", code="nonce")
        credential = self._asked("POST", f"{path}/reveal", _field("credential"), {"ticket": ticket, "secret": secret.hex()})
        if not hmac.compare_digest(credential, credential_of(terms, secret, nonce)):
            raise UploadError("the credential must be made of both numbers; it is not. Do not take part.", code="credential")
        return credential

    def send(self, outbox: Outbox) -> Sent:
        """Sends whatever waits; what was kept, came twice or was refused waits no longer, what came too early does.

        A request that the server refuses, say of a study it does not know, stops none of the others.

        Raises:
            UploadError: The server did not take all of it; what is left waits on, also over a crash. Call again later.
        """
        accepted = duplicate = 0
        rejected: list[tuple[bytes, str]] = []
        refusal: UploadError | None = None
        batches = deque(_batches(outbox.waiting()))
        while batches:
            batch = batches.popleft()
            try:
                said = self._asked("POST", _path(batch[0]), _counted(len(batch)), b"".join(batch))
            except UploadError as error:
                if error.status in _AWAY:
                    raise
                if error.status == _TOO_LARGE and len(batch) > 1:
                    batches.extendleft((batch[len(batch) // 2 :], batch[: len(batch) // 2]))
                else:
                    refusal = refusal or error
                continue
            reasons = {refused["index"]: str(refused["reason"]) for refused in said["rejected"]}
            for place, report in enumerate(batch):
                if reasons.get(place) != "early":
                    outbox.done(report)
            accepted, duplicate = accepted + said["accepted"], duplicate + said["duplicate"]
            rejected += [(batch[place], reason) for place, reason in reasons.items()]
        if refusal is not None:
            raise refusal
        return Sent(accepted=accepted, duplicate=duplicate, rejected=tuple(rejected))

    def _asked(self, method: str, path: str, read: Callable[[bytes], _T], body: bytes | dict[str, str] | None = None) -> _T:
        """One request, repeated while that can help."""
        refusal = UploadError("the collector was not asked.")
        for attempt in range(self._attempts):
            status, after, answer = self._once(method, f"{self._base}/v1/studies/{path}", body)
            if 200 <= status < 300:
                try:
                    return read(answer)
                except Exception:
                    status, answer = 0, b""  # cut off on its way: no answer
            refusal = _refusal(status, answer)
            if status not in _AGAIN:
                break
            if attempt + 1 < self._attempts:
                limit = min(self._first * 2**attempt, self._longest)
                self._wait(min(after, self._longest) + _COIN.uniform(0, limit))
        raise refusal

    def _once(self, method: str, address: str, body: bytes | dict[str, str] | None) -> tuple[int, float, bytes]:
        """Status (0 for none), the pause that was asked for, and the answer."""
        # Loaded here: a device that only draws has no use for the network's modules.
        from http.client import HTTPException
        from urllib.error import HTTPError
        from urllib.request import HTTPRedirectHandler, Request, build_opener

        class Nowhere(HTTPRedirectHandler):
            def redirect_request(self, *_: Any) -> None:
                """Reports go where they were meant to go."""

        kind = "application/vnd.sabun.reports" if isinstance(body, bytes) else "application/json"
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"User-Agent": "sabun-client"} | ({} if content is None else {"Content-Type": kind})
        request = Request(address, data=content, method=method, headers=headers)
        try:
            with build_opener(Nowhere).open(request, timeout=self._timeout) as response:
                return response.status, 0.0, response.read(_LARGEST_ANSWER)
        except HTTPError as error:
            with error:
                return error.code, _seconds(error.headers.get("Retry-After")), _rest(error)
        except (OSError, HTTPException, ValueError):
            return 0, 0.0, b""


def _path(report: bytes) -> str:
    return f"{report[1:17].hex()}/rounds/{int.from_bytes(report[17:21], 'big')}/reports"


def _batches(reports: list[bytes]) -> Iterator[list[bytes]]:
    """Reports of one study and round, as many as a request may hold; one that is larger goes alone."""
    for _, group in itertools.groupby(reports, key=_path):
        batch, size = list[bytes](), 0
        for report in group:
            if batch and (len(batch) == _MOST_REPORTS or size + len(report) > _MOST_BYTES):
                yield batch
                batch, size = [], 0
            batch.append(report)
            size += len(report)
        yield batch


def _rest(error: Any) -> bytes:
    try:
        content: bytes = error.read(1 << 16)
    except Exception:
        return b""
    return content


def _seconds(text: str | None) -> float:
    return float(text) if text is not None and text.isascii() and text.isdigit() else 0.0


def _refusal(status: int, answer: bytes) -> UploadError:
    try:
        problem = json.loads(answer)
        code, detail = str(problem["code"]), str(problem.get("detail", ""))
    except (ValueError, KeyError, TypeError):
        code, detail = ("unreachable" if status == 0 else f"http-{status}"), ""
    why = f"{code}: {detail}" if detail else code
    message = f"the collector must take what it is sent; it did not ({why}). It waits on this device."
    return UploadError(message, code=code, status=status)


def _field(name: str) -> Callable[[bytes], bytes]:
    def read(answer: bytes) -> bytes:
        content = bytes.fromhex(json.loads(answer)[name])
        if not content:
            raise ClientError(f"{name} must hold bytes.")
        return content

    return read


def _counted(sent: int) -> Callable[[bytes], dict[str, Any]]:
    def read(answer: bytes) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(answer)
        places = {refused["index"] for refused in said["rejected"]}
        if said["accepted"] + said["duplicate"] + len(places) != sent or not places <= set(range(sent)):
            raise ClientError("every report must be accounted for.")
        return said

    return read
