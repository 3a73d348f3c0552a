"""Files of Arrow itself (Feather, IPC streams) and ORC, read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from sksketch.exceptions import SourceError
from sksketch.streams.columns import Choice
from sksketch.streams.files import blamed
from sksketch.streams.formats.arrow import load_pyarrow
from sksketch.streams.formats.batches import BatchesReader
from sksketch.streams.places.partitions import Partitions
from sksketch.streams.places.remote import File, RemoteFile

if TYPE_CHECKING:
    import pyarrow as pa

_FILE_MAGIC, _OLD_MAGIC = b"ARROW1", b"FEA1"


def arrow_reader(files: list[File], choice: Choice, partitions: Partitions) -> BatchesReader:
    """Return the rows of Feather and Arrow IPC files, or of IPC streams."""
    return BatchesReader([_ipc(file) for file in files], choice, "arrow file", partitions)


def orc_reader(files: list[File], choice: Choice, partitions: Partitions) -> BatchesReader:
    """Return the rows of ORC files, stripe by stripe."""
    return BatchesReader([_Orc(file) for file in files], choice, "orc", partitions)


def _ipc(file: File) -> _IpcFile | _IpcStream:
    with file.open("rb") as raw:
        magic = raw.read(len(_FILE_MAGIC))
    if magic.startswith(_OLD_MAGIC):
        raise SourceError(f"{file}: Feather of version 1; write it again with a current library")
    return _IpcFile(file) if magic == _FILE_MAGIC else _IpcStream(file)


class _ArrowFile:
    """A file of batches, opened anew for each reading."""

    kind = "Arrow"
    jumps = True
    n_rows: int | None = None
    schema: Any

    def __init__(self, file: File) -> None:
        self.file, self.where = file, str(file)

    def _blamed(self) -> AbstractContextManager[None]:
        return blamed(
            self.where, f"cut short, damaged or not {self.kind}", "write or fetch it again"
        )

    def _raw(self) -> Any:
        pa = load_pyarrow()
        if isinstance(self.file, RemoteFile):
            return pa.PythonFile(self.file.open_ranges(), mode="r")
        # Not a map of the file: pages of a map that was read count as ours.
        return pa.OSFile(self.where)

    def _numbered(
        self, found: Iterator[Any], names: list[str], first: int = 0
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches with the number of their first row; what damages them names the file."""
        while True:
            with self._blamed():
                batch = next(found, None)
                if batch is None:
                    return
                batch.validate(full=True)
            yield first, batch.select(names)
            first += batch.num_rows


class _IpcFile(_ArrowFile):
    """A file with a list of its batches at the end, so that any of them can be read."""

    def __init__(self, file: File) -> None:
        super().__init__(file)
        self._sizes: dict[int, int] = {}
        with self._blamed(), self._open([]) as opened:
            self.schema, self.n_rows = opened.schema, opened.count_rows()
            if not 0 <= self.n_rows < 2**48:
                raise ValueError(f"{self.n_rows} rows are declared")

    def _open(self, names: list[str]) -> Any:
        ipc = load_pyarrow().ipc
        chosen = sorted(self.schema.get_field_index(name) for name in names)
        options = ipc.IpcReadOptions(included_fields=chosen)
        return ipc.open_file(self._raw(), options=options)

    def batches(self, names: list[str], start_row: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the batches from the one with ``start_row`` on, if their sizes are known."""
        with self._blamed():
            opened = self._open(names)
        first = number = 0
        while number < opened.num_record_batches and number in self._sizes:
            if first + self._sizes[number] > start_row:
                break
            first += self._sizes[number]
            number += 1
        with opened:
            rest = (self._sized(opened, k) for k in range(number, opened.num_record_batches))
            yield from self._numbered(rest, names, first)

    def _sized(self, opened: Any, number: int) -> Any:
        batch = opened.get_batch(number)
        self._sizes[number] = batch.num_rows
        return batch


class _IpcStream(_ArrowFile):
    """A stream of batches, which is read from the start."""

    jumps = False

    def __init__(self, file: File) -> None:
        super().__init__(file)
        with self._blamed(), self._open() as opened:
            self.schema = opened.schema

    def _open(self) -> Any:
        return load_pyarrow().ipc.open_stream(self._raw())

    def batches(self, names: list[str], start_row: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield all batches."""
        with self._blamed():
            opened = self._open()
        with opened:
            yield from self._numbered(iter(opened), names)


class _Orc(_ArrowFile):
    """An ORC file, read by its stripes."""

    kind = "ORC"
    jumps = False

    def __init__(self, file: File) -> None:
        super().__init__(file)
        with self._blamed():
            opened = self._open()
            self.schema, self.n_rows = opened.schema, opened.nrows

    def _open(self) -> Any:
        return load_pyarrow().orc.ORCFile(self._raw())

    def batches(self, names: list[str], start_row: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield all stripes: ORC does not tell how many rows one has before it is read."""
        with self._blamed():
            opened = self._open()
        stripes = (opened.read_stripe(k, columns=names) for k in range(opened.nstripes))
        yield from self._numbered(stripes, names)
