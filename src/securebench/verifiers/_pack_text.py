"""Text that a row keeps in a file of its pack, read on the trusted side."""

from __future__ import annotations

from securebench import _fs
from securebench.errors import InfrastructureError, PackError, os_reason
from securebench.families.base import MAX_TEXT
from securebench.resources import PackFile


def read_pack_text(file: PackFile, task_id: str) -> str:
    """The content of one pack file. Raises PackError where it is no plain UTF-8 file of a sensible size."""
    try:
        with _fs.open_directory(file.root) as root, _fs.open_beneath(root, file.path) as descriptor:
            return _fs.read_bounded(descriptor, MAX_TEXT, str(file.path)).decode("utf-8")
    except (_fs.TooLarge, _fs.UnsafeEntry, _fs.Missing) as error:
        raise PackError(f"task {task_id}: {error}") from error
    except UnicodeDecodeError:
        raise PackError(f"task {task_id}: {file.path} is not UTF-8") from None
    except OSError as error:
        raise InfrastructureError(f"task {task_id}: {file.path} {os_reason(error)}") from error
