"""How are claims judged on a Ray cluster? In blocks, whose verdicts come back as they are ready.

Ray Data keeps an actor per GPU (per core, where the cluster has no GPU or the evaluator uses none) and gives each block
again to another one when a node is lost. Nothing is written on the cluster: whoever asks keeps the journal, so a run
that was stopped goes on as one on a single machine does.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from factaudit.errors import FactauditError, UsageError, format_error_first_line
from factaudit.evaluators.base import Claim, Evaluator, Verdict
from factaudit.llm.settings import LLMSettings

#: Claims that are judged together. When a node is lost, those of the blocks that its actors had are judged again.
CLAIMS_PER_BLOCK = 128
#: Ray Data gives the blocks of a lost node to others, but not where the node held what it needs itself: the claims that
#: have no verdict yet are then begun anew.
RESTARTS_AFTER_LOST_NODES = 3
_ADDRESS_PATTERN = re.compile(r"ray(://\S+)?")
_TEXT_TYPE = pa.dictionary(pa.int32(), pa.large_string())  # a document is sent once for all claims of a block
_CLAIMS_SCHEMA = pa.schema(
    [("claim_id", pa.string()), ("claim", _TEXT_TYPE), ("doc", _TEXT_TYPE), ("topic", _TEXT_TYPE)]
)


def check_ray_address(address: str) -> None:
    """Raise `UsageError` where an address names no Ray cluster, or Ray is not installed."""
    if not _ADDRESS_PATTERN.fullmatch(address):
        raise UsageError(f"on: expected ray or ray://HOST:PORT, found {address!r}")
    try:
        import ray.data  # noqa: F401
    except ImportError as error:
        raise UsageError(f"on {address}: needs the extra [ray]: pip install 'factaudit[ray]' ({error})") from error


def has_language_model(evaluators: Iterable[Evaluator]) -> bool:
    """Whether an evaluator, by its parts, is best asked from one process: a language model's server is the cluster."""
    return any(isinstance(part, LLMSettings) for part in evaluators)


def judge_on_ray(
    address: str, evaluator: Evaluator, members: Iterable[Evaluator], claims: Iterable[Claim]
) -> Iterator[Verdict]:
    """One verdict per claim, block by block as they are ready, in any order.

    Args:
        address: ``ray`` (``RAY_ADDRESS``, or the cluster that this machine is part of, else one that is started here
            for as long as this takes) or ``ray://HOST:PORT``.
        members: the evaluator and those inside it: where one of them has a ``device``, each actor is given a GPU.
    """
    check_ray_address(address)
    import ray

    with _connect_ray_cluster(address):
        members = list(members)
        _pickle_user_modules_for_ray(members)
        wants_gpu = any(getattr(part, "device", None) in ("auto", "cuda") for part in members)
        gpus = int(ray.cluster_resources().get("GPU", 0)) if wants_gpu else 0
        judge_blocks = (
            _judge_blocks_through_ray_client if ray.util.client.ray.is_connected() else _judge_blocks_on_ray_actors
        )
        unjudged = {claim.claim_id: claim for claim in claims}
        lost = ray.exceptions
        for restarts_left in reversed(range(1 + RESTARTS_AFTER_LOST_NODES)):
            try:
                for lines in judge_blocks(evaluator, _make_ray_claim_blocks(unjudged.values()), gpus):
                    for row in map(json.loads, lines):
                        if "failure" in row:
                            raise FactauditError(f"on {address}: {row['failure']}")
                        unjudged.pop(row["claim_id"], None)
                        yield Verdict(**row)
                break
            except ray.exceptions.RayError as error:
                is_lost = isinstance(
                    error,
                    lost.RayActorError
                    | lost.ActorUnschedulableError
                    | lost.WorkerCrashedError
                    | lost.NodeDiedError
                    | lost.ObjectLostError,
                )
                if not is_lost or not restarts_left:
                    reason = str(error).strip().splitlines()[-1]
                    text = f"on {address}: {reason} (the same command again goes on from here)"
                    raise FactauditError(text) from error


def _make_ray_claim_blocks(claims: Iterable[Claim]) -> list[pa.Table]:
    """The claims as tables of at most `CLAIMS_PER_BLOCK` rows."""
    source, blocks = iter(claims), []
    while block := list(islice(source, CLAIMS_PER_BLOCK)):
        columns = zip(*((one.claim_id, one.claim, one.doc, one.topic) for one in block), strict=True)
        arrays = [pa.array(list(values), kind) for values, kind in zip(columns, _CLAIMS_SCHEMA.types, strict=True)]
        blocks.append(pa.table(arrays, schema=_CLAIMS_SCHEMA))
    return blocks


def _judge_blocks_on_ray_actors(evaluator: Evaluator, blocks: Sequence[pa.Table], n_gpus: int) -> Iterator[list[str]]:
    """What the actors say of each block, as it comes."""
    import ray

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = False
    workers = min(n_gpus or max(1, int(ray.cluster_resources().get("CPU", 1))), len(blocks))
    judged = ray.data.from_arrow(blocks).map_batches(
        RayWorker,
        fn_constructor_args=(evaluator, evaluator.signature),
        batch_size=max(map(len, blocks)),
        batch_format="pyarrow",
        # Of a lost node's actors no more than the block at work and the next one are judged again.
        compute=ray.data.ActorPoolStrategy(
            min_size=1, max_size=workers, initial_size=workers, max_tasks_in_flight_per_actor=2
        ),
        num_cpus=0 if n_gpus else 1,
        num_gpus=1 if n_gpus else 0,
    )
    for batch in judged.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
        yield batch["row"].to_pylist()


def _judge_blocks_through_ray_client(
    evaluator: Evaluator, blocks: Sequence[pa.Table], n_gpus: int
) -> Iterator[list[str]]:
    """The same through Ray's client, which has no Ray Data: an actor on the cluster goes through it block by block."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    # Beside the client's server: on a node that judges it would be lost with that node.
    beside = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
    placed = ray.remote(num_cpus=0, scheduling_strategy=beside)(_RayWorkCoordinator)
    coordinator = placed.remote(evaluator, blocks, n_gpus)
    while (lines := ray.get(coordinator.next.remote())) is not None:
        yield lines


class _RayWorkCoordinator:
    def __init__(self, evaluator: Evaluator, blocks: Sequence[pa.Table], n_gpus: int) -> None:
        self._lines = _judge_blocks_on_ray_actors(evaluator, blocks, n_gpus)

    def next(self) -> list[str] | None:
        """What was said of the next block; None where all are judged."""
        return next(self._lines, None)


@contextmanager
def _connect_ray_cluster(address: str) -> Iterator[None]:
    """The cluster for as long as the block lasts; one that the caller is connected to already is left as it is."""
    import ray

    if ray.is_initialized():
        yield
        return
    # Ray reports to its makers what a cluster that it starts is used for, unless it is told not to.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    with ExitStack() as stack:
        stack.callback(ray.shutdown)
        try:
            ray.init(os.environ.get("RAY_ADDRESS", "auto") if address == "ray" else address, **quiet)
        except (ConnectionError, ValueError, RuntimeError) as error:
            if address != "ray" or "RAY_ADDRESS" in os.environ:
                raise FactauditError(
                    f"on {address}: no Ray cluster answers: {format_error_first_line(error)}"
                ) from error
            folder = tempfile.mkdtemp(prefix="ray-")
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            stack.callback(ray.shutdown)
            ray.init("local", include_dashboard=False, _temp_dir=folder, **quiet)
        yield


def _pickle_user_modules_for_ray(evaluators: Iterable[Evaluator]) -> None:
    """Evaluators of the user's own modules travel with their code: the nodes have factaudit, not the user's folder."""
    import ray

    installed = {"site-packages", "dist-packages"}
    for one in (value for part in evaluators for value in (part, *getattr(part, "__dict__", {}).values())):
        module = sys.modules.get(str(getattr(one, "__module__", None)))
        file = getattr(module, "__file__", None)
        if module is None or not file or installed & set(Path(file).parts):
            continue
        if module.__name__.partition(".")[0] not in ("factaudit", "__main__", *sys.stdlib_module_names):
            ray.cloudpickle.register_pickle_by_value(module)


class RayWorker:
    """An actor: it has its evaluator (and so a model) for as long as it lives."""

    def __init__(self, evaluator: Evaluator, signature: str) -> None:
        self.evaluator = evaluator
        # A model's folder is read on each node, and factaudit itself is each node's own.
        self.differs = None if evaluator.signature == signature else evaluator.signature
        self.signature = signature

    def __call__(self, block: pa.Table) -> pa.Table:
        """The verdicts of a block of claims as lines of JSON; the last one says what ended it, if anything did."""
        rows: list[Mapping[str, Any]] = []
        if self.differs is not None:
            rows.append({"failure": f"a node would judge as {self.differs}, not as {self.signature}"})
        else:
            try:
                for verdict in self.evaluator.judge(Claim(**row) for row in block.to_pylist()):
                    rows.append(asdict(verdict))  # noqa: PERF401 (what comes before an error is kept)
            except FactauditError as error:
                rows.append({"failure": str(error)})
        lines = [json.dumps(row, default=lambda value: value.tolist()) for row in rows]
        return pa.table({"row": pa.array(lines, pa.large_string())})
