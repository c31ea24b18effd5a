"""Typed client for the REST API of Tributary. The methods and types are generated from its OpenAPI description."""

from . import models
from .error import TributaryError
from .operations import Operations

__version__ = "0.1.0"
__all__ = ["Tributary", "TributaryError", "models"]


class Tributary(Operations):
    """A server, and the key for its API. Use it as a context manager, or call `close`."""
