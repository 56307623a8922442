"""Measures the steps of a worker in the worker: its thread's CPU seconds, without the steps within a step.

`install` waits for the worker's module and wraps the functions of STEPS. The sums are written to a file of the folder
BENCH_STEPS for each process, at most once a second. The programs do not know of it.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import time
from functools import wraps
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dev.local_stack.process.paths import project_root

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

FOLDER = "BENCH_STEPS"
_TRIGGER = "materializer.worker.worker_loop"
_WRITE_SECONDS = 1.0
SETTLE_SECONDS = 2 * _WRITE_SECONDS + 1.0  # after which an idle worker has written its sums: a batch takes a second
STEPS = (
    ("consume", "stream_runtime.kafka.raw_reader", "RawReader.read"),
    ("backlog", "materializer.worker.backlog", "RawBacklog.append"),
    ("backlog", "materializer.worker.backlog", "RawBacklog.mark_folded"),
    ("topic check", "materializer.worker.worker_loop", "PollLoop._check_topics"),
    ("chunks", "materializer.worker.open_partitions", "OpenPartitions.process"),
    ("position", "stream_runtime.exactly_once.partition_task", "PartitionTask._read_position"),
    ("decode", "materializer.fold.chunk_fold", "decode_plain"),
    ("sort", "materializer.fold.chunk", "in_order"),
    ("reads", "materializer.rows.overlay", "Overlay.prefetch"),
    ("fold", "materializer.processing.processor", "TableProcessor.fold"),
    ("produce", "stream_runtime.exactly_once.committer", "Committer.commit_chunk"),
    ("changelog", "stream_runtime.state.checkpointed_state", "CheckpointedState.store_changelog"),
    ("changelog", "stream_runtime.state.checkpoints", "CheckpointStore.write_changelog"),
    ("commit", "stream_runtime.exactly_once.committer", "Committer._commit"),
    ("apply", "stream_runtime.state.rocksdb", "LocalStore.apply"),
    ("snapshot", "stream_runtime.state.checkpointed_state", "CheckpointedState.store_snapshot_if_due"),
    ("batch", "materializer.worker.worker_loop", "PollLoop.run_batch"),
)


class Steps:
    """Sums of thread CPU seconds by step."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.sums: dict[str, float] = {}
        self._inner: dict[int, list[float]] = {}  # by thread: the time of the steps within each open one
        self._written = 0.0

    def wrap(self, step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def measured(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever the function takes
            open_steps = self._inner.setdefault(_thread(), [])
            open_steps.append(0.0)
            started = time.thread_time()
            try:
                return function(*arguments, **named)
            finally:
                spent = time.thread_time() - started
                self.sums[step] = self.sums.get(step, 0.0) + spent - open_steps.pop()
                if open_steps:
                    open_steps[-1] += spent
                self._write_sometimes()

        return measured

    def _write_sometimes(self) -> None:
        now = time.monotonic()
        if now - self._written >= _WRITE_SECONDS:
            self._written = now
            part = self._file.with_suffix(".part")
            part.write_text(json.dumps(self.sums), encoding="utf-8")
            part.replace(self._file)


def _thread() -> int:
    return threading.get_ident()


def install() -> None:
    """Measure this process's children if the environment names a folder. Called when a worker's daemon starts."""
    if FOLDER in os.environ:
        sys.meta_path.insert(0, _Finder())


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a Spark job whose workers write their sums to the folder."""
    folder.mkdir()
    paths = (str(Path(__file__).with_name("worker_site")), str(project_root()), os.environ.get("PYTHONPATH"))
    return {FOLDER: str(folder), "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def read(folder: Path) -> dict[str, float]:
    """The sums of all workers that have written to the folder, by step."""
    found: dict[str, float] = {}
    for file in folder.glob("*.json"):
        for step, seconds in json.loads(file.read_text(encoding="utf-8")).items():
            found[step] = found.get(step, 0.0) + seconds
    return found


def instrument() -> Steps:
    """Wrap the steps' functions in this process."""
    steps = Steps(Path(os.environ[FOLDER]) / f"{os.getpid()}.json")
    for step, module_name, path in STEPS:
        owner: Any = importlib.import_module(module_name)
        *classes, name = path.split(".")
        for class_ in classes:
            owner = getattr(owner, class_)
        setattr(owner, name, steps.wrap(step, getattr(owner, name)))
    return steps


class _Finder(MetaPathFinder):
    """Instruments the modules after the first import of the worker's."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != _TRIGGER:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Instrumented(spec.loader)
        return spec


class _Instrumented(Loader):
    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        instrument()
