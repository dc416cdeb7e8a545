"""Expressions of C++ and Java: literals, variables, sums, comparisons, calls, lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from benchmarks.peers.words import Word

CONSTANTS: Final = {
    "true": True,
    "false": False,
    "null": None,
    "ISO_8859_1": "latin-1",
    "US_ASCII": "ascii",
    "UTF_8": "utf-8",
}


class Unknown(Exception):
    """Something that is not read."""


class Other:
    """A value that no assertion of interest depends on; so is whatever is asked of it."""


OTHER: Final = Other()


class Builder(list[str]):
    """Java's StringBuilder."""

    def __str__(self) -> str:
        return "".join(self)


_METHODS: Final[dict[str, Callable[..., Any]]] = {
    "length": lambda own: len(str(own)) if isinstance(own, Builder) else len(own),
    "size": len,
    "toString": str,
    "append": lambda own, more: own.append(str(more)) or own,
    "get": lambda own, index: own[index],
    "getBytes": lambda own, charset="utf-8": own.encode(charset),
    "toLowerCase": lambda own, *_: own.lower(),
    "replaceAll": lambda own, old, new: own.replace(old, new),
    "equals": lambda own, other: own == other,
}


class Scope(NamedTuple):
    """What an expression may name."""

    known: Mapping[str, Any]
    """Variables."""
    constants: Mapping[str, Any]
    calls: Mapping[str, Callable[..., Any]]
    """Functions and methods of the suite."""
    call: Callable[[str, list[Any]], Any]
    """Calls one of these, or a helper of the file."""


class Expression:
    """Reads an expression by recursive descent."""

    def __init__(self, words: list[Word], scope: Scope) -> None:
        self._words, self._scope = words, scope
        self.at = 0

    def _next(self) -> str:
        if self.at >= len(self._words):
            return ""
        word = self._words[self.at]
        return word.text if word.kind in {"sign", "name"} else ""

    def _take(self, text: str) -> bool:
        if self._next() == text:
            self.at += 1
            return True
        return False

    def compared(self) -> Any:
        """Return its value. Raises Unknown, TypeError and LookupError."""
        left = self._sum()
        if self._take("<"):
            return bool(left < self._sum())
        if self._take("=="):
            return self._scope.call("==", [left, self._sum()])
        if self._take("?"):
            yes = self.compared()
            self._expect(":")
            no = self.compared()
            return yes if left else no
        return left

    def _sum(self) -> Any:
        left = self._product()
        while (sign := self._next()) in {"+", "-"}:
            self.at += 1
            right = self._product()
            if sign == "+":
                is_text = isinstance(left, str) or isinstance(right, str)
                left = f"{_shown(left)}{_shown(right)}" if is_text else left + right
            else:
                left -= right
        return left

    def _product(self) -> Any:
        left = self._single()
        while self._take("*"):
            left *= self._single()
        return left

    def _single(self) -> Any:
        if self._take("-"):
            return -self._single()
        value = self._first()
        while (sign := self._next()) in {".", "->", "["}:
            self.at += 1
            if sign == "[":
                value = value[self.compared()]
                self._expect("]")
                continue
            name = self._next()
            self.at += 1
            if self._take("("):
                value = self._method(value, name, self._list(")"))
            elif isinstance(value, Other):
                value = self._scope.constants.get(name, OTHER)
            elif name == "length":
                value = len(value)
            else:
                raise Unknown
        return value

    def _method(self, value: Any, name: str, arguments: list[Any]) -> Any:
        if isinstance(value, Other):
            return self._scope.call(name, arguments) if name in self._scope.calls else OTHER
        if name in self._scope.calls:
            return self._scope.call(name, [value, *arguments])
        if (function := _METHODS.get(name)) is not None:
            try:
                return function(value, *arguments)
            except (TypeError, LookupError, AttributeError, UnicodeError) as error:
                raise Unknown from error
        raise Unknown

    def _first(self) -> Any:
        if self.at >= len(self._words):
            raise Unknown
        word = self._words[self.at]
        self.at += 1
        if word.kind in {"text", "number"}:
            value = word.value
            while word.kind == "text" and self.at < len(self._words) and self._words[self.at].kind == "text":
                value += self._words[self.at].value
                self.at += 1
            return value
        if word.text == "(":
            cast = self._words[self.at : self.at + 2]
            if len(cast) == 2 and cast[0].kind == "name" and cast[1].text == ")" and cast[0].text[0].isupper():
                self.at += 2
                return self._single()
            value = self.compared()
            self._expect(")")
            return value
        if word.text == "{":
            return self._list("}")
        if word.text == "new":
            return self._new()
        if word.kind == "name":
            return self._named(word.text)
        raise Unknown

    def _new(self) -> Any:
        name = self._next()
        self.at += 1
        while self._take("["):
            if self._take("]"):
                continue
            size = self.compared()
            self._expect("]")
            return [None] * int(size)
        if self._take("{"):
            return self._list("}")
        self._expect("(")
        arguments = self._list(")")
        if name == "StringBuilder":
            return Builder(arguments)
        return self._scope.call(name, arguments)

    def _named(self, name: str) -> Any:
        if self._take("("):
            return self._scope.call(name, self._list(")"))
        if name in self._scope.known:
            return self._scope.known[name]
        if name in self._scope.constants:
            return self._scope.constants[name]
        if name[0].isupper() and not name.isupper():
            return OTHER  # a class
        raise Unknown

    def _list(self, end: str) -> list[Any]:
        found: list[Any] = []
        while not self._take(end):
            found.append(self.compared())
            if not self._take(",") and self._next() != end:
                raise Unknown
        return found

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise Unknown


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
