"""How are claims judged on a Ray cluster? In blocks, whose verdicts come back as they are ready.

There is an actor per GPU (per core, where the cluster has no GPU or the evaluator uses none). Ray
starts those of a lost node again elsewhere, and gives them their blocks again. Nothing is written
on the cluster: whoever asks keeps the journal, so a run that was stopped goes on as one on a single
machine does.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from factaudit.errors import FactauditError, UsageError, format_error_first_line
from factaudit.evaluators.base import Claim, Evaluator, FromFunction, Verdict

#: Claims that are judged together. When a node is lost, those of the blocks that its actors had are
#: judged again.
CLAIMS_PER_BLOCK = 128
#: So many losses of its node an actor and its blocks survive.
_MAX_LOSSES = 3
_ADDRESS_PATTERN = re.compile(r"ray(://\S+)?")


def check_ray_address(address: str) -> None:
    """Raise `UsageError` where an address names no Ray cluster, or Ray is not installed."""
    if not _ADDRESS_PATTERN.fullmatch(address):
        raise UsageError(f"on: expected ray or ray://HOST:PORT, found {address!r}")
    try:
        import ray  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"on {address}: needs the extra [ray]: pip install 'factaudit[ray]' ({error})"
        ) from error


def asks_language_model(evaluators: Iterable[Evaluator]) -> bool:
    """Whether one of an evaluator's parts asks a language model: that is done from one process,
    because what bounds it is the model's server."""
    return any(hasattr(part, "cache_server") for part in evaluators)


def judge_on_ray(
    address: str, evaluator: Evaluator, members: Sequence[Evaluator], claims: Iterable[Claim]
) -> Iterator[Verdict]:
    """One verdict per claim, block by block as they are ready, in any order.

    Args:
        address: ``ray`` (``RAY_ADDRESS``, or the cluster that this machine is part of) or
            ``ray://HOST:PORT``.
        members: the evaluator and those inside it: where one of them has a ``device``, each actor
            is given a GPU.
    """
    import ray

    _connect_cluster(address)
    _pickle_user_modules(members)
    cluster = ray.cluster_resources()
    wants_gpu = any(getattr(part, "device", None) in ("auto", "cuda") for part in members)
    n_gpus = int(cluster.get("GPU", 0)) if wants_gpu else 0
    needs = {"num_cpus": 0, "num_gpus": 1} if n_gpus else {"num_cpus": 1}
    actor = ray.remote(max_restarts=_MAX_LOSSES, max_task_retries=_MAX_LOSSES, **needs)(RayWorker)
    source, under_way = iter(claims), dict[Any, Any]()
    n_actors = n_gpus or max(1, int(cluster.get("CPU", 1)))
    free = [actor.remote(evaluator, evaluator.signature) for _ in range(n_actors)]
    try:
        while True:
            while free:
                worker = free.pop()
                if block := list(islice(source, CLAIMS_PER_BLOCK)):
                    under_way[worker.judge.remote(block)] = worker
                else:
                    # One of a lost node may wait for its place.
                    ray.kill(worker)
            if not under_way:
                return
            (ready, *_), _ = ray.wait(list(under_way))
            free = [under_way.pop(ready)]
            verdicts, failure = ray.get(ready)
            yield from verdicts
            if failure is not None:
                raise FactauditError(f"on {address}: {failure}")
    except ray.exceptions.RayError as error:
        reason = str(error).strip().splitlines()[-1]
        raise FactauditError(
            f"on {address}: {reason} (the same command again goes on from here)"
        ) from error
    finally:
        for worker in [*free, *under_way.values()]:
            ray.kill(worker)


class RayWorker:
    """An actor: it has its evaluator (and so a model) for as long as it lives."""

    def __init__(self, evaluator: Evaluator, signature: str) -> None:
        self.evaluator = evaluator
        # A model's folder is read on each node, and factaudit itself is each node's own.
        self.differs = None if evaluator.signature == signature else evaluator.signature
        self.signature = signature

    def judge(self, block: Sequence[Claim]) -> tuple[list[Verdict], str | None]:
        """The verdicts of a block of claims, and what ended it, if anything did."""
        if self.differs is not None:
            return [], f"a node would judge as {self.differs}, not as {self.signature}"
        verdicts: list[Verdict] = []
        try:
            for verdict in self.evaluator.judge(block):
                verdicts.append(verdict)  # noqa: PERF402 (what comes before an error is kept)
        except FactauditError as error:
            return verdicts, str(error)
        return verdicts, None


def _connect_cluster(address: str) -> None:
    """Connect this process to the cluster, unless the caller has done so already."""
    import ray

    place = os.environ.get("RAY_ADDRESS", "auto") if address == "ray" else address
    try:
        if not ray.is_initialized():
            ray.init(place, logging_level=logging.ERROR, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        said = format_error_first_line(error)
        raise FactauditError(f"on {address}: no Ray cluster answers: {said}") from error


def _pickle_user_modules(evaluators: Iterable[Evaluator]) -> None:
    """Evaluators of the user's own modules travel with their code: the nodes have factaudit and
    what is installed, not the user's folder."""
    import ray

    there = ("factaudit", *sys.stdlib_module_names)
    for one in evaluators:
        code: Any = one.function if isinstance(one, FromFunction) else type(one)
        module = sys.modules.get(str(getattr(code, "__module__", None)))
        file = Path(getattr(module, "__file__", None) or "site-packages")
        is_own = module is not None and module.__name__.partition(".")[0] not in there
        if is_own and "site-packages" not in file.parts:
            ray.cloudpickle.register_pickle_by_value(module)
