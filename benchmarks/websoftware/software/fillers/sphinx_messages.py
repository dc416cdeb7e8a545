"""Translates the messages of a Sphinx handbook word by word, into PO files of a language."""

import json
import re
from pathlib import Path

from babel.messages import pofile


def main() -> None:
    told = json.loads(Path("content.json").read_text())
    words, language = told["words"], told["language"]
    for template in Path("pot").rglob("*.pot"):
        with template.open("rb") as file:
            catalog = pofile.read_po(file, locale=language)
        for message in catalog:
            text = message.id
            if text and isinstance(text, str) and not re.search(r"\]\(|`|://|<", text):
                message.string = re.sub(r"[A-Za-z]+", lambda word: words.get(word[0].lower(), word[0]), text)
        to = Path("source/locale") / language / "LC_MESSAGES" / template.relative_to("pot").with_suffix(".po")
        to.parent.mkdir(parents=True, exist_ok=True)
        with to.open("wb") as file:
            pofile.write_po(file, catalog)


main()
