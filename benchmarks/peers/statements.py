"""Runs what is plain in tests written in C++ or Java: literals, variables, loops, and calls of named functions.

A suite says by Python functions what its calls do; nothing else is executed. A statement that has anything else in it
is left out, and what it would have set is unknown. An assertion with something unknown raises no error: it is noted in
:attr:`Tests.unread`, so that no case is lost without a word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from benchmarks.peers.expressions import CONSTANTS, Expression, Scope, Unknown
from benchmarks.peers.words import Word, words_of

_ASSERTION = re.compile("assert[A-Z]|EXPECT_|ASSERT_|testRulesOnPaths")
_MOST_ROUNDS: Final = 100_000


class Method(NamedTuple):
    """A test or helper: its name, parameters, rows of a table of parameters, and body."""

    name: str
    parameters: list[str]
    rows: list[list[str]]
    body: list[Word]
    is_test: bool


class Tests:
    """A source file with tests, and the functions that give meaning to its calls."""

    def __init__(
        self,
        source: str,
        calls: Mapping[str, Callable[..., Any]],
        constants: Mapping[str, Any],
        *,
        octets: bool = False,
    ) -> None:
        """``calls``: functions by name; a method is called with its object first, if that is known. ``constants``:
        values by name. ``octets``: literals are bytes, each a character, as in C++."""
        self._constants = {**CONSTANTS, **constants}
        self._calls = calls
        self._octets = octets
        self._words_of_all = list(words_of(source, octets=octets))
        self.test = ""
        """Name of the test that runs."""
        self.unread: list[str] = []
        """Assertions that are not read."""
        self.fields: dict[str, Any] = {}
        """Variables of the class, once the tests have run."""
        self._methods: dict[str, Method] = {}

    def run(self, leave_out: Mapping[str, str]) -> None:
        """Run all tests but those named in ``leave_out``."""
        found = list(self._found())
        self._methods = {method.name: method for method in found if not method.is_test}
        for method in found:
            if not method.is_test or method.name in leave_out:
                continue
            self.test = method.name
            for row in method.rows or [[]]:
                values = dict(zip(method.parameters, map(_plain, row), strict=False))
                self._run(method.body, {**self.fields, **values})

    def _found(self) -> Iterator[Method]:
        """Yield the methods of a class, or TESTs; set the fields."""
        rows: list[list[str]] = []
        is_test, at, words = False, 0, self._words_of_all
        if not self._octets:  # Java: all is in a class
            start = next((i for i, word in enumerate(words) if word.text == "class"), len(words))
            at = next((i + 1 for i in range(start, len(words)) if words[i].text == "{"), len(words))
        begun = at
        while at < len(words):
            word = words[at]
            if word.text == "@":
                is_test |= words[at + 1].text in {"Test", "ParameterizedTest"}
                if words[at + 1].text == "CsvSource":
                    end = _closing(words, at + 2)
                    rows = [_cells(one.value) for one in words[at + 2 : end] if one.kind == "text"]
                at = _closing(words, at + 2) + 1 if words[at + 2].text == "(" else at + 2
                begun = at
            elif word.text == "(" and words[at - 1].kind == "name":
                end = _closing(words, at)
                name, inner = words[at - 1].text, words[at + 1 : end]
                at = end + 1
                while at < len(words) and (words[at].kind == "name" or words[at].text == ","):
                    at += 1
                if at < len(words) and words[at].text == "{":
                    last = _closing(words, at)
                    if name == "TEST":
                        name, is_test = inner[-1].text, True
                    before_commas = zip(inner, [*inner[1:], Word("sign", ",")], strict=False)
                    parameters = [word.text for word, after in before_commas if after.text == ","]
                    yield Method(name, parameters, rows, words[at + 1 : last], is_test)
                    rows, is_test, at = [], False, last + 1
                    begun = at
            elif word.text == ";":
                self._run(words[begun : at + 1], self.fields)
                at += 1
                begun = at
            elif word.text == "{":
                is_namespace = "namespace" in {words[at - 1].text, words[at - 2].text}
                is_class = any(word.text == "class" for word in words[begun:at])
                at = at + 1 if is_namespace else _closing(words, at) + 1
                if is_namespace or is_class:
                    begun = at
            else:
                at += 1

    def _run(self, words: list[Word], known: dict[str, Any]) -> Any:
        """Run statements. Returns what a ``return`` gives."""
        at = 0
        while at < len(words):
            if words[at].text in {"{", "}", "try"}:
                at += 1
            elif words[at].text in {"while", "for", "catch"}:
                head = _closing(words, at + 1)
                last = _closing(words, head + 1) if words[head + 1].text == "{" else _end(words, head + 1)
                if words[at].text != "catch":
                    self._loop(words[at].text, words[at + 2 : head], words[head + 1 : last + 1], known)
                at = last + 1
            else:
                end = _end(words, at)
                statement = words[at:end]
                if statement and statement[0].text == "return":
                    return self._value(statement[1:], known)
                self._statement(statement, known)
                at = end + 1
        return None

    def _loop(self, kind: str, head: list[Word], body: list[Word], known: dict[str, Any]) -> None:
        colon = next((i for i, word in enumerate(head) if word.text == ":"), None)
        try:
            if kind == "while":
                for _ in range(_MOST_ROUNDS):
                    if not self._value(head, known):
                        break
                    self._run(body, known)
            elif colon is not None:
                for value in list(self._value(head[colon + 1 :], known)):
                    known[head[colon - 1].text] = value
                    self._run(body, known)
            else:
                self._count(head, body, known)
        except Unknown:
            self._note(body)

    def _count(self, head: list[Word], body: list[Word], known: dict[str, Any]) -> None:
        """Run ``for (int i = 0; i < n; i++)``. Raises Unknown."""
        first, condition, step = _parts(head)
        self._statement(first, known)
        if [word.text for word in step[1:]] != ["+", "+"]:
            raise Unknown
        for _ in range(_MOST_ROUNDS):
            if not self._value(condition, known):
                break
            self._run(body, known)
            known[step[0].text] += 1

    def _note(self, words: list[Word]) -> None:
        self.unread += [f"{self.test}: {words[i].text}" for i in range(len(words)) if _ASSERTION.match(words[i].text)]

    def _statement(self, words: list[Word], known: dict[str, Any]) -> None:
        depth, equals = 0, None
        for i, word in enumerate(words):
            depth += (word.text in {"(", "{", "["}) - (word.text in {")", "}", "]"}) if word.kind == "sign" else 0
            if word.text == "=" and word.kind == "sign" and depth == 0:
                equals = i
                break
        if equals is None:
            try:
                if words and words[0].text == "absl::StrAppend":
                    self._append(words, known)
                else:
                    self._value(words, known)
            except Unknown:
                self._note(words)
            return
        target, index = words[equals - 1], None
        if target.text == "]":  # a field of an array, or an array as C++ declares it
            opened = max(i for i in range(equals) if words[i].text == "[")
            target, index = words[opened - 1], words[opened + 1 : equals - 1]
        try:
            value = self._value(words[equals + 1 :], known)
            if index:
                known[target.text][self._value(index, known)] = value
            else:
                known[target.text] = value
        except (Unknown, LookupError, TypeError):
            known.pop(target.text, None)

    def _append(self, words: list[Word], known: dict[str, Any]) -> None:
        """Run ``absl::StrAppend(&name, more)``."""
        name = words[3].text
        more = Expression([Word("sign", "{"), *words[5:-1], Word("sign", "}")], self._scope(known)).compared()
        known[name] = "".join([known[name], *more])

    def _value(self, words: list[Word], known: Mapping[str, Any]) -> Any:
        """Return the value of an expression. Raises Unknown."""
        reader = Expression(words, self._scope(known))
        try:
            value = reader.compared()
        except (TypeError, LookupError) as error:
            raise Unknown from error
        if reader.at < len(words):
            raise Unknown
        return value

    def _scope(self, known: Mapping[str, Any]) -> Scope:
        return Scope(known, self._constants, self._calls, lambda name, arguments: self._call(name, arguments, known))

    def _call(self, name: str, arguments: list[Any], known: Mapping[str, Any]) -> Any:
        """Call a function of the suite, or a helper of the file. Raises Unknown."""
        short = name.rpartition("::")[2]
        if (function := self._calls.get(short)) is not None:
            try:
                return function(*arguments)
            except (TypeError, ValueError, LookupError, AttributeError, OSError) as error:
                raise Unknown from error
        if (method := self._methods.get(short)) is not None:
            values = dict(zip(method.parameters, arguments, strict=False))
            return self._run(method.body, {**self.fields, **known, **values})
        raise Unknown


def _plain(cell: str) -> Any:
    return cell == "True" if cell in {"True", "False"} else cell


def _parts(head: list[Word]) -> list[list[Word]]:
    ends = [i for i, word in enumerate(head) if word.text == ";"]
    if len(ends) != 2:
        raise Unknown
    return [head[: ends[0]], head[ends[0] + 1 : ends[1]], head[ends[1] + 1 :]]


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.split(",")]


def _closing(words: list[Word], at: int) -> int:
    """Return the place of the bracket that closes the one at a place."""
    depth = 0
    for i in range(at, len(words)):
        if words[i].kind == "sign":
            depth += (words[i].text in {"(", "{", "["}) - (words[i].text in {")", "}", "]"})
            if depth == 0:
                return i
    return len(words) - 1


def _end(words: list[Word], at: int) -> int:
    """Return the place of the semicolon that ends a statement."""
    depth = 0
    for i in range(at, len(words)):
        if words[i].kind == "sign":
            depth += (words[i].text in {"(", "{", "["}) - (words[i].text in {")", "}", "]"})
            if depth < 0 or (depth == 0 and words[i].text == ";"):
                return i
    return len(words)
