"""This file holds Client: what is asked of a vLLM server, and how its answers become samples."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import httpx
import numpy as np

from miniverl.contract.request import GenerationRequest, Sampling
from miniverl.engines.assemble import Sample
from miniverl.engines.vllm.server import Server
from miniverl.errors import EngineError

COMPLETIONS = "/v1/completions"


class Client:
    """The one who talks to a server. Every failure is an EngineError with the end of the server's log."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def load_adapter(self, name: str, folder: Path) -> None:
        self._post("/v1/load_lora_adapter", {"lora_name": name, "lora_path": str(folder)})

    def unload_adapter(self, name: str) -> None:
        self._post("/v1/unload_lora_adapter", {"lora_name": name})

    def prompt_logps(self, ids: Sequence[int], *, model: str) -> np.ndarray:
        """float64 [len(ids) - 1]; log-prob of each id after the first, given those before it, at temperature 1."""
        body = {"model": model, "prompt": list(ids), "max_tokens": 1, "temperature": 0, "prompt_logprobs": 0}
        found = self._post(COMPLETIONS, body).json()["choices"][0]["prompt_logprobs"]
        return np.array([place[str(token)]["logprob"] for token, place in zip(ids[1:], found[1:], strict=True)])

    def samples(self, requests: Sequence[GenerationRequest], *, model: str) -> Iterator[tuple[int, Sample]]:
        """All requests at once; each sample as it is finished, with the place of its request.

        The server decides how many it computes together. Ending the iteration ends the requests.
        """
        answers: SimpleQueue[tuple[int, Sample] | BaseException | None] = SimpleQueue()
        loop = asyncio.new_event_loop()
        asking = loop.create_task(self._ask_all(requests, model, answers))
        # A thread of its own: whoever calls may have an event loop running already, as notebooks do.
        thread = Thread(target=_run, args=(loop, asking, answers), name="vllm-requests", daemon=True)
        thread.start()
        try:
            while (answer := answers.get()) is not None:
                if isinstance(answer, BaseException):
                    raise answer
                yield answer
        finally:
            with suppress(RuntimeError):  # the loop is closed: everything was answered
                loop.call_soon_threadsafe(asking.cancel)
            thread.join()

    async def _ask_all(self, requests: Sequence[GenerationRequest], model: str, answers: SimpleQueue[Any]) -> None:
        async with self._server.async_client(len(requests)) as client, asyncio.TaskGroup() as group:
            for place, request in enumerate(requests):
                group.create_task(self._ask(client, place, request, model, answers))

    async def _ask(
        self, client: httpx.AsyncClient, place: int, request: GenerationRequest, model: str, answers: SimpleQueue[Any]
    ) -> None:
        try:
            answer = await client.post(COMPLETIONS, json=completion(request, model=model))
        except httpx.TransportError as error:
            raise self._lost(error) from error
        self._refuse_failed(answer)
        answers.put((place, sample_of(answer.json()["choices"][0], request.sampling)))

    def _post(self, route: str, body: Mapping[str, Any]) -> httpx.Response:
        try:
            with self._server.client() as client:
                answer = client.post(route, json=dict(body))
        except httpx.TransportError as error:
            raise self._lost(error) from error
        self._refuse_failed(answer)
        return answer

    def _lost(self, error: httpx.TransportError) -> EngineError:
        return self._server.error(f"no longer answers ({type(error).__name__}); the end of its log:")

    def _refuse_failed(self, answer: httpx.Response) -> None:
        if not answer.is_success:
            said = answer.text[:500]
            raise self._server.error(f"refused {answer.url.path} ({answer.status_code}): {said}; the end of its log:")


def _run(loop: asyncio.AbstractEventLoop, asking: asyncio.Task[None], answers: SimpleQueue[Any]) -> None:
    """The thread: runs the requests to their end; None, or what went wrong, is the last answer."""
    try:
        loop.run_until_complete(asking)
        answers.put(None)
    except asyncio.CancelledError:
        answers.put(None)
    except BaseExceptionGroup as failed:
        answers.put(failed.exceptions[0])
    finally:
        loop.close()


def completion(request: GenerationRequest, *, model: str) -> dict[str, Any]:
    """The body of one request: ids in, ids out, with its own seed and nothing left to a default."""
    sampling = request.sampling
    body = {
        "model": model,
        "prompt": request.prompt.ids.tolist(),
        "max_tokens": sampling.max_new_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "seed": request.seed,
        "stop_token_ids": list(sampling.stop_token_ids),
        "stop": list(sampling.stop),
        "ignore_eos": True,  # only the request's own ends end it
        "return_token_ids": True,
    }
    return {**body, "logprobs": 0} if sampling.logprobs else body


def sample_of(choice: Mapping[str, Any], sampling: Sampling) -> Sample:
    """The server's log-probs are taken after temperature, top-k and top-p: under either of these two they are those
    of the distribution the token was drawn from, and the full vocabulary's are not known."""
    scores = np.array(choice["logprobs"]["token_logprobs"], np.float32) if sampling.logprobs else None
    return Sample(
        tokens=np.array(choice["token_ids"], np.int32),
        logps=None if sampling.truncates else scores,
        behaviour_logps=scores if sampling.truncates else None,
        stop=choice["stop_reason"] if isinstance(choice["stop_reason"], str) else None,
    )
