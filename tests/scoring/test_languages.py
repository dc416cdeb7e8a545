"""The language of texts whose corpus does not say it."""

from __future__ import annotations

import pickle
import socket

import pytest

from crawl4llm.scoring import BundledLanguages

TEXTS = {
    "en": "The river runs from the hills to the sea, and the market opens early in the morning.",
    "de": "Der Fluss fließt von den Hügeln zum Meer, und der Markt öffnet früh am Morgen.",
    "fr": "La rivière coule des collines vers la mer, et le marché ouvre tôt le matin.",
    "ja": "川は丘から海へ流れ、市場は朝早く開きます。",
    "zh": "河流从山丘流向大海。市场一大早就开门了。",
    "ko": "강은 언덕에서 바다로 흐르고 시장은 아침 일찍 문을 엽니다.",
}


@pytest.fixture(scope="module")
def languages() -> BundledLanguages:
    return BundledLanguages()


@pytest.mark.parametrize("language", TEXTS)
def test_languages_are_told_without_the_network(
    languages: BundledLanguages, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "socket", None)
    assert languages.language(TEXTS[language] * 3) == language


@pytest.mark.parametrize("text", ["", " ", "17 23 42", "x=1; y=2", "\ud800"], ids=range(5))
def test_a_text_in_no_language_has_none(languages: BundledLanguages, text: str) -> None:
    assert languages.language(text) is None


def test_only_the_beginning_is_read(languages: BundledLanguages) -> None:
    assert languages.language(TEXTS["en"] * 60 + TEXTS["de"] * 600) == "en"


def test_it_goes_to_other_processes_without_its_model(languages: BundledLanguages) -> None:
    languages.load()
    data = pickle.dumps(languages)
    assert len(data) < 1000
    assert pickle.loads(data).language(TEXTS["fr"]) == "fr"
    assert pickle.loads(data).digest == languages.digest
