"""The web server as the console and the students' pages run it."""

import socket

import uvicorn
from starlette.types import ASGIApp

from grader.web.listening import Listening


def run_server(app: ASGIApp, listening: Listening, listener: socket.socket, *, most: int) -> None:
    """Answer requests until a signal stops the process; the listener is closed by whoever made it.

    Args:
        listener: From `listening.socket`.
        most: Requests at a time; further ones are refused.

    Raises:
        KeyboardInterrupt: It was stopped so, after what was open is answered.
    """
    config = uvicorn.Config(
        app,
        # no header of a client or proxy changes what is known of a peer; links are not written to a log
        proxy_headers=False,
        access_log=False,
        server_header=False,
        log_level="warning",
        ws="none",
        lifespan="off",
        http="h11",
        loop="asyncio",
        timeout_keep_alive=30,
        timeout_graceful_shutdown=5,
        limit_concurrency=most,
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.key,
    )
    uvicorn.Server(config).run(sockets=[listener])
