"""What `securebench audit PACK` sends into a row's trials beyond what the row declares: those who did not work, and
the reference with one thing broken."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from securebench.audit.pack.idle import idle_programs
from securebench.audit.pack.making import Maker, reference_of, references, text_of
from securebench.audit.pack.mutants import Mutant, python_mutants, text_mutants
from securebench.audit.pack.scripts import Script
from securebench.audit.pack.trials import NOTHING, Entrant
from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.line_diff import changed_ranges
from securebench.candidates.tree import EntryKind, Tree, TreeEntry
from securebench.families.base import CandidateKind
from securebench.families.code_completion import is_python
from securebench.families.registry import family
from securebench.resources import Component
from securebench.verifiers.suites.overlays import laid_over
from securebench.verifiers.suites.repository_task import RepositoryTask

STRUCTURE, MUTATED = "J10", "P23"
EQUIVALENT = "equivalent_mutants"
MOST_FILES = 20
MOST_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Entrants:
    """Makes them: at most `mutants` of a row's reference, chosen by `seed`."""

    mutants: int
    seed: int

    async def __call__(self, maker: Maker) -> AsyncIterator[Entrant]:
        accepted = _equivalent(maker)
        kind = family(maker.task.task_type).candidate
        made = {
            CandidateKind.CODE: self._code,
            CandidateKind.PATCH: self._patches,
            CandidateKind.WORKSPACE: self._workspaces,
        }[kind]
        async for entrant in made(maker):
            if entrant.mutant not in accepted:
                yield entrant

    async def _code(self, maker: Maker) -> AsyncIterator[Entrant]:
        public = maker.task.view_for(Component.WORKER).values()
        tests = maker.task.view_for(Component.TEST_SANDBOX).values().get("tests")
        reads_input = isinstance(tests, dict) and tests.get("source") == "io"
        for idle in idle_programs(public, reads_input):
            yield Entrant(idle.name, idle.rule, maker.code(idle.source), about=idle.source)
        reference = next((reference_of(maker.task, one) for one in references(maker.task)), None)
        if reference is None or isinstance(reference, Script) or not is_python(str(public["language"])):
            return
        for mutant in python_mutants(text_of(maker.task, reference), self.mutants, self.seed):
            yield _mutant(mutant, maker.code(mutant.source))

    async def _patches(self, maker: Maker) -> AsyncIterator[Entrant]:
        if not references(maker.task):
            return
        task = await maker.repository()
        touched = [entry.path for entry in task.pristine.files if task.gold and task.gold.get(entry.path) != entry]
        if touched:
            without = laid_over(task.pristine, (), touched)
            yield Entrant("the files of the gold patch deleted", STRUCTURE, maker.patch(task.pristine, without))
        found = list(self._changed_files(task))
        for path, mutant in found[:: max(1, len(found) // max(1, self.mutants))][: self.mutants]:
            if task.gold is None:
                return
            tree = laid_over(task.gold, [maker.file(path, mutant.source.encode())])
            yield _mutant(mutant, maker.patch(task.pristine, tree), path)

    def _changed_files(self, task: RepositoryTask) -> Iterator[tuple[str, Mutant]]:
        """Mutants in what the gold patch added, file by file."""
        if task.gold is None:
            return
        for entry in task.gold.files:
            before = task.pristine.get(entry.path)
            if before == entry or not entry.path.endswith(".py") or entry.path in task.protected:
                continue
            new, old = task.text(task.gold, entry.path), task.text(task.pristine, entry.path)
            if new is None:
                continue
            ranges = changed_ranges((old or "").splitlines(), new.splitlines())
            lines = [line + 1 for one in ranges for line in range(one.new_start, one.new_end)]
            yield from ((entry.path, mutant) for mutant in python_mutants(new, self.mutants, self.seed, lines))

    async def _workspaces(self, maker: Maker) -> AsyncIterator[Entrant]:
        for resource in references(maker.task):
            overlay = await maker.laid_down(reference_of(maker.task, resource))
            files = [entry for entry in overlay if entry.kind is EntryKind.FILE][:MOST_FILES]
            gone = CandidateArtifact(maker.task.id, CandidateKind.WORKSPACE, workspace=maker.store.save(Tree()))
            yield Entrant("an empty workspace", NOTHING, gone)
            empty = [maker.file(entry.path, b"") for entry in files]
            yield Entrant("empty files of the right names", STRUCTURE, await maker.workspace(empty))
            async for entrant in _copies(maker, files):
                yield entrant
            async for entrant in self._altered(maker, overlay, files):
                yield entrant

    async def _altered(
        self, maker: Maker, overlay: tuple[TreeEntry, ...], files: list[TreeEntry]
    ) -> AsyncIterator[Entrant]:
        each = max(1, self.mutants // max(1, len(files)))
        for entry in files[: self.mutants]:
            text = _text(maker, entry)
            if text is None:
                continue
            mutants = python_mutants(text, each, self.seed) if entry.path.endswith(".py") else []
            for mutant in mutants or text_mutants(text, each, self.seed):
                data = mutant.source.encode()
                changed = [entry._replace(digest=maker.store.put(data), size=len(data))]
                others = [one for one in overlay if one.path != entry.path]
                yield _mutant(mutant, await maker.workspace([*others, *changed]), entry.path)


async def _copies(maker: Maker, files: list[TreeEntry]) -> AsyncIterator[Entrant]:
    """Every output is a copy of an input, or of what was asked."""
    base = await maker.base()
    inputs = [entry for entry in base.files if entry.size and entry.path not in {file.path for file in files}]
    for source in inputs[:2]:
        copied = [source._replace(path=entry.path) for entry in files]
        yield Entrant(f"copies of {source.path}", STRUCTURE, await maker.workspace(copied))
    asked = str(maker.task.view_for(Component.WORKER).values().get("instructions", ""))
    echo = [maker.file(entry.path, asked.encode()) for entry in files]
    yield Entrant("copies of the instructions", STRUCTURE, await maker.workspace(echo))


def _text(maker: Maker, entry: TreeEntry) -> str | None:
    try:
        return maker.store.read(entry.digest, MOST_BYTES).decode("utf-8") if entry.size else None
    except ValueError:
        return None


def _mutant(mutant: Mutant, candidate: CandidateArtifact, path: str = "") -> Entrant:
    name = f"{mutant.what} of {PurePosixPath(path)}" if path else mutant.what
    return Entrant(f"{name} ({mutant.id})", MUTATED, candidate, about=mutant.diff, mutant=mutant.id)


def _equivalent(maker: Maker) -> frozenset[str]:
    """Mutants that the author calls as right as the reference."""
    values = [one.value for one in maker.task.resources.resources if one.name == EQUIVALENT]
    return frozenset(str(item) for value in values if isinstance(value, list) for item in value)
