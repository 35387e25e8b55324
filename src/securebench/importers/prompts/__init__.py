"""What a row asks, in words: Markdown templates with `$name` placeholders.

`prompts/FORMAT/VARIANT.md` is a format's own; `prompts/FAMILY/VARIANT.md` is that of every row of a family. Where
there is neither, rows ask in the words of the source. `$question` is the row's own text; `$examples` and
`$worked_examples` are solved rows of a second source, written as `FAMILY/_example.md` and `FAMILY/_worked_example.md`
say. A dollar sign is written `$$`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from string import Template

from securebench._canonical import digest_bytes
from securebench._schema import suggest
from securebench.errors import ConfigError

DEFAULT = "default"
QUESTION, EXAMPLES, WORKED = "question", "examples", "worked_examples"
MAX_TEMPLATE = 256 * 1024
_TEXT_FAMILIES = ("multiple_choice", "short_answer")
"""Those that have prompts: of formats whose rows may be of any family, each row asks in those of its own."""
_UNEXPLAINED = ("inspect", "simpleqa")
"""Formats whose rows have no way to their answer, and so none to show."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A variant of a format's prompt, or a template of the operator's. `families` has the templates of a variant that
    each family has its own of; then no other family has it."""

    variant: str = DEFAULT
    template: str = f"${QUESTION}"
    families: Mapping[str, str] = field(default_factory=dict)
    file: str = ""  # the operator's

    @property
    def title(self) -> str:
        """What people know it by."""
        return self.file or f"the prompt {self.variant}"

    def of(self, family: str | None) -> Prompt | None:
        """That of rows of a family; None where it has none."""
        if not self.families:
            return self
        text = self.families.get(family or "")
        return None if text is None else Prompt(self.variant, text)

    @property
    def words(self) -> frozenset[str]:
        """The placeholders that it uses."""
        return frozenset(word for text in self._texts for word in Template(text).get_identifiers())

    @property
    def _texts(self) -> list[str]:
        return list(self.families.values()) or [self.template]

    @property
    def wants_examples(self) -> bool:
        return bool(self.words & {EXAMPLES, WORKED})

    def check(self, known: Collection[str]) -> None:
        """Raises ConfigError for a placeholder that a format has nothing for, and where the question is missing."""
        name, allowed = self.title, {QUESTION, EXAMPLES, WORKED, *known}
        unknown = sorted(self.words - allowed)
        if not all(Template(text).is_valid() for text in self._texts):
            raise ConfigError(f"{name}: a dollar sign that begins no placeholder is written $$")
        if unknown:
            listed = ", ".join(f"${word}" for word in sorted(allowed))
            raise ConfigError(f"{name}: unknown placeholder ${unknown[0]}; known are {listed}")
        if not all(QUESTION in Template(text).get_identifiers() for text in self._texts):
            raise ConfigError(f"{name}: a prompt needs the placeholder ${QUESTION}")

    def render(self, **words: str) -> str:
        """The text that a row's `question`, `prompt` or `instructions` holds. Values stay as they are."""
        return Template(self.template).substitute(words)


def variants(name: str, family: str | None = None) -> Mapping[str, Prompt]:
    """The prompts of a format, by variant; every format has `default`. Without a family its rows are of any."""
    found = {DEFAULT: Prompt()}
    if family is None:
        by_variant: dict[str, dict[str, str]] = {}
        for one in _TEXT_FAMILIES:
            for stem, text in _variants(one).items():
                by_variant.setdefault(stem, {})[one] = text
        found = {stem: Prompt(stem, families=texts) for stem, texts in by_variant.items()} | found
    for folder in filter(None, (family, name)):
        found |= {stem: Prompt(stem, text) for stem, text in _variants(folder).items()}
    if name in _UNEXPLAINED:
        found = {stem: prompt for stem, prompt in found.items() if WORKED not in prompt.words}
    return dict(sorted(found.items()))


def load_prompt(name: str, variant: str, family: str | None = None) -> Prompt:
    """One variant of a format's prompt. Raises ConfigError for one that it does not have."""
    known = variants(name, family)
    if variant not in known:
        raise ConfigError(
            f"{name} has no prompt {variant!r}{suggest(variant, known)}; there are: {', '.join(sorted(known))}; "
            "a template of your own is named by its path, which ends with .md"
        )
    return known[variant]


def own_prompt(data: bytes, name: str) -> Prompt:
    """A template of the operator's, called after its digest. Raises ConfigError."""
    if len(data) > MAX_TEMPLATE:
        raise ConfigError(f"{name}: file is larger than {MAX_TEMPLATE} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{name}: not UTF-8") from None
    return Prompt(digest_bytes(data), text.removesuffix("\n"), file=name)


def example_template(family: str, worked: bool) -> Prompt | None:
    """How a solved row of a family is shown; None for a family that has no such thing."""
    text = _folder(family).get("_worked_example" if worked else "_example")
    return None if text is None else Prompt(template=text)


def _variants(folder: str) -> dict[str, str]:
    return {stem: text for stem, text in _folder(folder).items() if not stem.startswith("_")}


def _folder(name: str) -> dict[str, str]:
    folder = files(__name__) / name
    if not folder.is_dir():
        return {}
    found = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".md")), key=lambda entry: entry.name)
    return {entry.name.removesuffix(".md"): entry.read_text(encoding="utf-8").removesuffix("\n") for entry in found}
