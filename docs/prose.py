"""Marks sentences that a reader is likely to read twice: long ones, and turns that are not plain English.

``make lint`` runs it over everything that people read: pages, docstrings, help, errors, log lines and page templates.
It counts by file, or prints each marked sentence with its reason if files are named: ``docs/prose.py README.md``. A
mark is a place to look at: reword the sentence, or leave it if it is clear.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SHARE, MOST, WORDS = 0.05, 600, 30  # of the sentences that may be marked; of them in all; of words in a sentence

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md")
CODE = tuple(f"{room}/**/*.{kind}" for room in ("crawl4llm", "simulate", "settings") for kind in ("py", "html", "js"))

RULES = {
    reason: re.compile(pattern)
    for reason, pattern in {
        "starts with a clause": r"^(What|Who|Whoever|Whatever|Whether|Where|That which|(In|To|With) what|For (who|what)"
        r"|Of (what|those|which|these|more|all|each)|By (what|which|how)|How (many|much|long|often))\b(?![^.?!]*\?)",
        "a clause as a noun": r"\b(?<!no matter )(?<!say )(?<!says )"
        r"(of|by|for|from|with|in|at|to|than|on|and|or|but|is|are|as) what "
        r"(is|was|are|were|came|comes|becomes|became|waits|it|they|one|can|could|may|must|has|had|have|would|will|the|a)\b",
        "who without a person": r"\b([Ff]or|[Tt]o|[Bb]y|[Oo]f) who(?=\s)"
        r"|\bwho (asks|tunes|waits|wants|holds|reads|looks|crawls|knows)\b",
        "not English": r"\b(be|been|is|was|were|are) had\b|\banew\b|\b(is|are|was|were) none\b|\bnone such\b"
        r"|\bin the mean\b|\b[Ss]o many\b(?! that)|\bas (often|long|many) as there are\b|\btold apart\b|\bbut for\b"
        r"|\ball the (same|longer)\b|\bthe (first|last|next) of all\b|\bgoes by\b|\b(gone|goes) on with\b"
        r"|\btakes? part\b|\bin turn with\b|\bof whom\b|\bby (itself|themselves) alone\b|\bthe one or the other\b"
        r"|\ba (page|document|second|crawl|link|URL) (takes|costs|is had)\b",
        "where for if": r"(?<=[,;:] )where (there|it|they|a|an|the|no|one|this|that)\b",
    }.items()
}

_END = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z(*])|\n\s*\n|\n\s*[-*] |\n\s*\d+\. |\|")
_PLAIN_WORD = re.compile(r"[(\"']?[A-Za-z][a-z]*([-'][a-z]+)*[.,;:!?)\"']*")
_GENERATED_PAGE = re.compile(r"This\s+page\s+is\s+(written|generated)\s+from\s+`crawl4llm/")
_GENERATED_REST = re.compile("<!-- What follows is (?:written|generated) by")
_INLINE_TAG = r"</?(a|b|bdi|code|em|i|kbd|label|span|strong)\b[^>]*>"


def reasons(sentence: str) -> list[str]:
    """Return why a sentence is marked; an empty list if it is not."""
    words = len(sentence.split())
    long = [f"{words} words"] if words > WORDS else []
    return long + [reason for reason, rule in RULES.items() if rule.search(sentence)]


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield each sentence of four words or more, with the number of lines before it; CODE and QUOTE stand for those."""
    text = _replaced(r"`+[^`]+`+", "CODE", text)
    text = _replaced(r'(?<![^\s(])"[^"]+"(?!\w)', "QUOTE", text)
    text = re.sub(r"\]\([^)\s]*\)|[][]", "", text)
    start = 0
    for end in [*_END.finditer(text), None]:
        sentence = " ".join(text[start : end.start() if end else None].split()).lstrip("*_#>- ")
        if len(sentence.split()) >= 4:
            yield text[:start].count("\n"), sentence
        start = end.end() if end else start


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts in a file that people read, each with the number of its first line."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from _of_page(text)
    elif path.suffix == ".html":
        text = _replaced(r"<!--.*?-->|<(script|style)\b.*?</\1>|\{[%#].*?[%#]\}", "", text)
        text = re.sub(_INLINE_TAG, "", re.sub(r"\{\{.*?\}\}", "X", text))
        yield from _found(r"[^<>]+(?=<)", text)
    elif path.suffix == ".js":
        text = re.sub(r"\$\{[^{}]*\}", "X", _replaced(r"/\*.*?\*/|(?m:^ *//[^\n]*)", "", text))
        yield from ((line, said[1:-1]) for line, said in _found(r'"[^"\n]*"|`[^`]*`', text) if _is_prose(said[1:-1]))
    else:
        yield from _of_module(ast.parse(text))


def _of_page(text: str) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs of a page, without code, quotations, and parts that are generated from code."""
    if _GENERATED_PAGE.search(text):
        return
    text = _GENERATED_REST.split(text)[0]
    text = _replaced(r"<!-- begin: .*?<!-- end -->|<!--.*?-->|(?m:^ *(```+).*?^ *\1)", "", text)
    for line, paragraph in _found(r"(?:.*\S.*\n?)+", text):
        if not re.match(r" {4}|>", paragraph):
            yield line, paragraph


def _of_module(node: ast.AST, is_docstring: bool = False) -> Iterator[tuple[int, str]]:
    """Yield docstrings, and all other strings that are sentences, wherever they stand."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str) and is_docstring:
            yield node.lineno, re.sub(r"(?m)^ {4}.*$|^>>>.*$", "", inspect.cleandoc(node.value))
        elif isinstance(node.value, str) and _is_prose(node.value):
            yield node.lineno, node.value
    elif isinstance(node, ast.JoinedStr):
        whole = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        if _is_prose(whole):
            yield node.lineno, whole
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                yield from _of_module(part.value)
    else:
        for child in ast.iter_child_nodes(node):
            yield from _of_module(child, isinstance(node, ast.Expr))


def _is_prose(text: str) -> bool:
    """Tell a sentence from a query, a pattern or markup: five words or more, of which most are plain."""
    words = text.split()
    return len(words) > 4 and sum(_PLAIN_WORD.fullmatch(word) is not None for word in words) > 0.6 * len(words)


def _replaced(pattern: str, word: str, text: str) -> str:
    """Return a text with a word for each match of a pattern; no line gets another number."""
    return re.sub(pattern, lambda found: word + "\n" * found[0].count("\n"), text, flags=re.DOTALL)


def _found(pattern: str, text: str) -> Iterator[tuple[int, str]]:
    return ((text[: found.start()].count("\n") + 1, found[0]) for found in re.finditer(pattern, text))


def main(named: list[str]) -> int:
    """Print counts by file, or marks of the named files; return 1 if there are too many."""
    files = [Path(name) for name in named]
    files = files or sorted({path for pattern in (*PAGES, *CODE) for path in ROOT.glob(pattern)})
    total, marks = 0, Counter[Path]()
    for path in files:
        try:
            found = [(line + below, said) for line, text in prose(path) for below, said in sentences(text)]
        except (OSError, UnicodeDecodeError, SyntaxError) as error:
            print(f"{path}: cannot be read as {path.suffix or 'Python'}: {error}", file=sys.stderr)
            return 2
        total += len(found)
        for line, said in found:
            if why := reasons(said):
                marks[path] += 1
                if named:
                    print(f"{path}:{line}: {', '.join(why)}: {said}")
    if not named:
        for path, count in marks.most_common():
            print(f"{count:5} {path.relative_to(ROOT)}")
    share = marks.total() / max(total, 1)
    print(f"{marks.total()} of {total} sentences are marked ({share:.1%}); at most {SHARE:.0%} and {MOST} may be")
    return int(share > SHARE or marks.total() > MOST)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
