"""Sends requests: key, repetition, errors."""

import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from .error import TributaryError

#: Longest wait before a repetition, whatever the server asks for.
DELAY_MAX = 60.0
#: Wait before the first repetition if the server asks for none. It doubles each time.
DELAY = 0.5


class Core:
    """A connection to a server."""

    def __init__(
        self,
        server: str,
        api_key: str,
        *,
        retries: int = 3,
        timeout: float = 60.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Creates a client. Sends nothing yet.

        server: address, such as https://links.example.com.
        api_key: private key: ak_live_… or ak_test_….
        retries: how often a call is repeated after 429 and 503, if it is safe to repeat.
        timeout: seconds that the server may pause.
        transport: replaces the transport of httpx, for example to use a proxy.
        """
        headers = {"Authorization": f"Bearer {api_key}"}
        self._retries = retries
        #: The client underneath, for what the methods leave out, such as headers of a response. It follows no redirects:
        #: the API has none, and the key must not go elsewhere.
        self.http = httpx.Client(base_url=server, headers=headers, timeout=timeout, transport=transport)

    def close(self) -> None:
        """Closes the connections."""
        self.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _json(self, method: str, path: str, **parts: Any) -> Any:
        return self._read(method, path, **parts).json()

    def _bytes(self, method: str, path: str, **parts: Any) -> bytes:
        return self._read(method, path, **parts).content

    def _nothing(self, method: str, path: str, **parts: Any) -> None:
        self._read(method, path, **parts)

    def _stream(self, method: str, path: str, **parts: Any) -> Iterator[bytes]:
        return _parts(self._send(method, path, **parts))

    def _read(self, method: str, path: str, **parts: Any) -> httpx.Response:
        response = self._send(method, path, **parts)
        response.read()
        return response

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int | bool | None] | None = None,
        header: Mapping[str, str | None] | None = None,
        body: object = None,
    ) -> httpx.Response:
        request = self.http.build_request(
            method,
            path,
            params={name: value for name, value in (query or {}).items() if value is not None},
            headers={name: value for name, value in (header or {}).items() if value is not None},
            json=body,
        )
        failed = 0
        while True:
            response = self.http.send(request, stream=True)
            if response.is_success:
                return response
            response.read()
            is_busy = response.status_code in (429, 503)
            if not is_busy or failed >= self._retries or not _is_repeatable(request):
                raise TributaryError.read(response)
            time.sleep(_delay(response, failed))
            failed += 1


def _parts(response: httpx.Response) -> Iterator[bytes]:
    try:
        yield from response.iter_bytes()
    finally:
        response.close()


def segment(text: str) -> str:
    """Encodes a part of a path."""
    return quote(text, safe="")


def _is_repeatable(request: httpx.Request) -> bool:
    """Whether a request has the same effect once and twice. Events have ids, so a repeated one counts once."""
    return request.method in ("GET", "PUT", "DELETE") or request.url.path.endswith("/web-events")


def _delay(response: httpx.Response, failed: int) -> float:
    asked = response.headers.get("Retry-After", "")
    seconds = float(asked) if asked.isdecimal() else DELAY * 2.0**failed
    return min(seconds, DELAY_MAX)
