"""An application over HTTP: health for orchestrators, and interactive queries over all instances of the group.

``app`` makes an ASGI application of a ``KafkaStreams``; ``HttpServerProcess`` serves it by a process of its own, as
``pykstreams run --http`` does, ``HttpServer`` in a thread of this one. Needs the extra ``http``: ``pip install
pykstreams[http]``.
"""

try:
    from pykstreams.http.asgi import HttpApp, app
    from pykstreams.http.process.server_process import HttpServerProcess
    from pykstreams.http.server import HttpServer, bound
except ModuleNotFoundError as error:
    if error.name is not None and error.name.partition(".")[0] in ("starlette", "uvicorn", "h11"):
        raise ImportError(
            f"pykstreams.http needs {error.name}, which is not installed; pip install 'pykstreams[http]'"
        ) from error
    raise
from pykstreams.http.options import Address, HttpOptions

__all__ = ["Address", "HttpApp", "HttpOptions", "HttpServer", "HttpServerProcess", "app", "bound"]
