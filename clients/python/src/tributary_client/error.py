"""Errors of the API."""

from typing import Self

import httpx

from . import models


class TributaryError(Exception):
    """The server answered with an error."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        fields: list[models.ErrorDetail],
        retryable: bool,
        request_id: str | None,
    ) -> None:
        super().__init__(f"{status} {code}: {message}")
        #: HTTP status.
        self.status = status
        #: Code for programs, which never changes; `unexpected_response` if the answer is not of the API.
        self.code = code
        #: Message for people.
        self.message = message
        #: The faulty fields.
        self.fields = fields
        #: Whether the same request can succeed later.
        self.retryable = retryable
        #: Id of the request in the server's log.
        self.request_id = request_id

    @classmethod
    def read(cls, response: httpx.Response) -> Self:
        """Reads an error from a response."""
        status, request_id = response.status_code, response.headers.get("X-Request-Id")
        try:
            error: models.ErrorBody = response.json()["error"]
            code, message = error["code"], error["message"]
            return cls(status, code, message, error.get("details") or [], error["retryable"], request_id)
        except (ValueError, KeyError, TypeError):
            # A proxy's page, for example.
            message = f"the server answered {status} without an error of the API"
            return cls(status, "unexpected_response", message, [], status >= 500, request_id)
