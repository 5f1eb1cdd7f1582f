"""Commands, run for a page: what they would do, and what they did.

A command runs in this process exactly as it would from a terminal; it tells what it has to say to the errand instead.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, final

from sabun.errors import ParameterError, SabunError
from sabun.privacy.amounts import exact_positive
from sabun.telling.terminal.foretelling import plan_of
from sabun.telling.terminal.output import Heard, heard

__all__ = ["Errand", "Errands", "Foreseen"]

Run = Callable[[list[str]], int]
_MOST = 200


@final
@dataclass(frozen=True, kw_only=True)
class Foreseen:
    """What a command foretold.

    Args:
        question: What it would ask.
        n_records: For how many records, and
        public: with what else its plan is made.
        remarks: What it said.
        complaint: Why it would fail; empty where it would not.
        error: What was raised.
        plans: Plans that were made already, by epsilon.
    """

    question: Any = None
    n_records: int | None = None
    public: dict[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    complaint: str = ""
    error: BaseException | None = None
    plans: dict[Fraction, Any] = field(default_factory=dict, repr=False)

    def plan(self, epsilon: Fraction) -> Any:
        """The plan with that epsilon; None where the command has none to tell.

        Raises:
            SabunError: It cannot be asked with that epsilon.
        """
        if self.question is None or self.n_records is None or getattr(self.question, "epsilon", None) is None:
            return None
        if epsilon not in self.plans:
            self.plans[epsilon] = plan_of(self.question, n_records=self.n_records, public=self.public, epsilon=epsilon)
        return self.plans[epsilon]


@final
@dataclass(kw_only=True)
class Errand:
    """A command that was sent off.

    Args:
        words: What was typed, with names of files as the folder knows them.
        about: What the page needs to tell of it.
    """

    words: list[str]
    about: dict[str, Any]
    hears: Heard = field(default_factory=Heard)
    done: Future[None] | None = None

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.done is not None and self.done.done()


@final
class Errands:
    """Commands that were sent off, by the name of the form that sent them: a form sends once, however often it is sent.

    One runs at a time. Threads are waited for when the desk closes: what is paid for is never lost.

    Args:
        run: Runs a command line in this process.
    """

    def __init__(self, run: Run) -> None:
        self.run, self._lock = run, threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="desk")
        self._sent: OrderedDict[str, Errand] = OrderedDict()
        self._foreseen: tuple[object, Foreseen] = (None, Foreseen())
        self._following, self._newest = threading.Lock(), OrderedDict[str, object]()

    @contextmanager
    def turn(self, form: str) -> Iterator[bool]:
        """Waits until no other page is being made that follows its form; whether this one is still wanted then.

        A plan may take seconds and a form changes with every key: older ones of the same form are not made at all.
        """
        with self._lock:
            mine = self._newest[form] = object()
            self._newest.move_to_end(form)
            while len(self._newest) > _MOST:
                self._newest.popitem(last=False)
        with self._following:
            yield self._newest.get(form) is mine

    def foresee(self, typed: Sequence[str], *, epsilon: str, key: object) -> Foreseen:
        """What a command would do; it ends before it charges. Another epsilon alone does not read the table again."""
        try:
            exact_positive(epsilon, name="epsilon")
        except SabunError as error:
            return Foreseen(complaint=str(error), error=error)
        with self._lock:
            known, found = self._foreseen
        if known == key:
            return found
        with heard(plan_only=True) as hears:
            self.run([*typed, "--json"])
        question, n_records, public = hears.foretold or (None, None, {})
        remarks = tuple(hears.remarks)
        found = Foreseen(
            question=question,
            n_records=n_records,
            public=public,
            remarks=remarks,
            complaint=hears.complaint,
            error=hears.error,
        )
        if not found.complaint:
            with self._lock:
                self._foreseen = (key, found)
        return found

    def send(self, form: str, typed: list[str], **about: Any) -> Errand:
        """Sends a command off, once for each form.

        Args:
            form: The form's own name.
            typed: The command line.
            about: What the page needs; `words` is what is shown for the command line.
        """
        with self._lock:
            if form not in self._sent:
                while len(self._sent) >= _MOST:
                    self._sent.popitem(last=False)
                errand = Errand(words=about.pop("words"), about=about)
                self._sent[form] = errand
                errand.done = self._thread.submit(self._go, errand, [*typed, "--json"])
            return self._sent[form]

    def sent(self, form: str) -> Errand:
        """An errand by the name of its form.

        Raises:
            ParameterError: There is none.
        """
        with self._lock:
            if form not in self._sent:
                raise ParameterError("the answer must be one that was asked for here; it is not. Look for it in the ledger.")
            return self._sent[form]

    def writing(self) -> set[Path]:
        """What those that have not ended are about to write."""
        with self._lock:
            return {one.about["files"]["out"] for one in self._sent.values() if not one.over and "out" in one.about["files"]}

    def _go(self, errand: Errand, typed: list[str]) -> None:
        with heard() as errand.hears:
            self.run(typed)

    def close(self) -> None:
        """Waits for what was sent off."""
        self._thread.shutdown(wait=True)
