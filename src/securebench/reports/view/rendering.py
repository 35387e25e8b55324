"""Pages of runs, made when they are asked for and kept while the run's files do not change."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path

from securebench.reports.content import content_of
from securebench.reports.html.report_page import report_page
from securebench.reports.runs import load_runs
from securebench.reports.under_way import is_held
from securebench.reports.view.files import full_signature

_KEPT_BYTES = 128 * 2**20


class Renderer:
    """One page at a time: making one takes a core. `trusted` maps ids of keys to names."""

    def __init__(self, trusted: Mapping[str, str]) -> None:
        self._trusted = trusted
        self._kept: OrderedDict[object, bytes] = OrderedDict()

    def report(self, directory: Path) -> bytes:
        """Raises IntegrityError and StoreError for what is no run, or cannot be read."""
        return self._page(("report",), (directory,), self._report)

    def comparison(self, first: Path, second: Path) -> bytes:
        """Raises ConfigError where the two have nothing in common, and as `report`."""
        return self._page(("compare",), (first, second), self._compared)

    def _report(self, directories: tuple[Path, ...]) -> str:
        return report_page([content_of(run) for run in load_runs(directories, self._trusted)])

    def _compared(self, directories: tuple[Path, ...]) -> str:
        from securebench.reports.compare.comparison import compare_runs
        from securebench.reports.compare.page import comparison_page

        return comparison_page(compare_runs(load_runs(directories, self._trusted)))

    def _page(self, kind: tuple[str], directories: tuple[Path, ...], make: Callable[[tuple[Path, ...]], str]) -> bytes:
        key = (kind, *((one, full_signature(one), is_held(one)) for one in directories))
        if key not in self._kept:
            self._kept[key] = make(directories).encode()
            while sum(map(len, self._kept.values())) > _KEPT_BYTES and len(self._kept) > 1:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]
