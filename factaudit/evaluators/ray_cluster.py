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
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

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
    check_ray_address(address)
    import ray

    with _connect_cluster(address):
        _pickle_user_modules(members)
        cluster = ray.cluster_resources()
        wants_gpu = any(getattr(part, "device", None) in ("auto", "cuda") for part in members)
        n_gpus = int(cluster.get("GPU", 0)) if wants_gpu else 0
        needs = {"num_cpus": 0, "num_gpus": 1} if n_gpus else {"num_cpus": 1}
        actor = ray.remote(RayWorker).options(
            max_restarts=_MAX_LOSSES, max_task_retries=_MAX_LOSSES, **needs
        )
        workers = [
            actor.remote(evaluator, evaluator.signature)
            for _ in range(n_gpus or max(1, int(cluster.get("CPU", 1))))
        ]
        source = iter(claims)
        blocks = iter(lambda: list(islice(source, CLAIMS_PER_BLOCK)), [])
        try:
            pool = ray.util.ActorPool(workers)
            judged = pool.map_unordered(lambda worker, block: worker.judge.remote(block), blocks)
            for verdicts, failure in judged:
                yield from verdicts
                if failure is not None:
                    raise FactauditError(f"on {address}: {failure}")
        except ray.exceptions.RayError as error:
            reason = str(error).strip().splitlines()[-1]
            raise FactauditError(
                f"on {address}: {reason} (the same command again goes on from here)"
            ) from error
        finally:
            for worker in workers:
                ray.kill(worker)


class RayWorker:
    """An actor: it has its evaluator (and so a model) for as long as it lives."""

    def __init__(self, evaluator: Evaluator, signature: str) -> None:
        self.evaluator = evaluator
        self.signature = signature

    def judge(self, block: Sequence[Claim]) -> tuple[list[Verdict], str | None]:
        """The verdicts of a block of claims, and what ended it, if anything did."""
        verdicts: list[Verdict] = []
        own = self.evaluator.signature
        if own != self.signature:
            # A model's folder is read on each node, and factaudit itself is each node's own.
            return verdicts, f"a node would judge as {own}, not as {self.signature}"
        try:
            for verdict in self.evaluator.judge(block):
                verdicts.append(verdict)  # noqa: PERF402 (what comes before an error is kept)
        except FactauditError as error:
            return verdicts, str(error)
        return verdicts, None


@contextmanager
def _connect_cluster(address: str) -> Iterator[None]:
    """The cluster for as long as the block lasts; one that the caller is connected to already is
    left as it is."""
    import ray

    if ray.is_initialized():
        yield
        return
    place = os.environ.get("RAY_ADDRESS", "auto") if address == "ray" else address
    try:
        ray.init(place, logging_level=logging.ERROR, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        said = format_error_first_line(error)
        raise FactauditError(f"on {address}: no Ray cluster answers: {said}") from error
    try:
        yield
    finally:
        ray.shutdown()


def _pickle_user_modules(evaluators: Iterable[Evaluator]) -> None:
    """Evaluators of the user's own modules travel with their code: the nodes have factaudit, not
    the user's folder."""
    import ray

    for one in evaluators:
        code = one.function if isinstance(one, FromFunction) else type(one)
        module = sys.modules.get(code.__module__)
        file = getattr(module, "__file__", None) or "site-packages"
        is_ours = code.__module__.partition(".")[0] in ("factaudit", "__main__")
        if not is_ours and "site-packages" not in Path(file).parts:
            ray.cloudpickle.register_pickle_by_value(module)
