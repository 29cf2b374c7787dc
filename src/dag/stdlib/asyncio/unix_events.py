"""An event loop without sockets, pipes or processes: it runs coroutines on the interpreter's thread."""

import threading

from . import base_events, events

__all__ = ("SelectorEventLoop", "EventLoop")

# How long one wait lasts at most, so that code which waits for ever can be stopped.
SLICE = 0.02


class SelectorEventLoop(base_events.BaseEventLoop):
    """Wakes up for its timers and for other threads; there is nothing else to wait for."""

    def __init__(self, selector=None):
        super().__init__()
        self._woken = threading.Event()
        self._selector = self

    def select(self, timeout):
        if timeout is not None and timeout <= 0:
            self._woken.clear()
            return []
        end = None if timeout is None else self.time() + timeout
        while not self._woken.is_set():
            rest = SLICE if end is None else end - self.time()
            if rest <= 0:
                break
            self._woken.wait(min(rest, SLICE))
        self._woken.clear()
        return []

    def _process_events(self, event_list):
        pass

    def _write_to_self(self):
        self._woken.set()

    def _refuse(self, *args, **kwargs):
        raise NotImplementedError(
            "sockets, pipes, signals and processes are not available in the Dag interpreter;"
            " run this task on a Python worker"
        )

    add_reader = add_writer = remove_reader = remove_writer = add_signal_handler = remove_signal_handler = _refuse
    _make_socket_transport = _make_ssl_transport = _make_datagram_transport = _make_read_pipe_transport = _refuse
    _make_write_pipe_transport = _refuse

    async def _refuse_later(self, *args, **kwargs):
        self._refuse()

    _make_subprocess_transport = create_connection = create_server = create_datagram_endpoint = _refuse_later
    create_unix_connection = create_unix_server = getaddrinfo = getnameinfo = subprocess_exec = _refuse_later
    subprocess_shell = connect_read_pipe = connect_write_pipe = start_tls = _refuse_later
    sock_recv = sock_sendall = sock_connect = sock_accept = _refuse_later


class _DefaultEventLoopPolicy(events._BaseDefaultEventLoopPolicy):
    _loop_factory = SelectorEventLoop


EventLoop = SelectorEventLoop
