"""Signals, which belong to the worker: handlers can be set and are never called."""

SIG_DFL, SIG_IGN = 0, 1
SIG_BLOCK, SIG_UNBLOCK, SIG_SETMASK = 0, 1, 2
NSIG = 65
SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGKILL, SIGUSR1 = range(1, 11)
SIGSEGV, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM, SIGSTKFLT, SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP = range(11, 21)
SIGTTIN, SIGTTOU, SIGURG, SIGXCPU, SIGXFSZ, SIGVTALRM, SIGPROF, SIGWINCH, SIGIO, SIGPWR = range(21, 31)
SIGSYS, SIGPOLL = 31, 29
ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF = 0, 1, 2

ItimerError = OSError
_handlers = {}


def default_int_handler(number=SIGINT, frame=None):
    raise KeyboardInterrupt


def _check(number):
    if not 0 < number < NSIG:
        raise ValueError("signal number out of range")


def signal(number, handler):
    _check(number)
    if handler not in (SIG_DFL, SIG_IGN) and not callable(handler):
        raise TypeError("signal handler must be signal.SIG_IGN, signal.SIG_DFL, or a callable object")
    before = getsignal(number)
    _handlers[number] = handler
    return before


def getsignal(number):
    _check(number)
    return _handlers.get(number, default_int_handler if number == SIGINT else SIG_DFL)


def strsignal(number):
    _check(number)
    return None


def valid_signals():
    return set(range(1, NSIG))


def set_wakeup_fd(fd, *, warn_on_full_buffer=True):
    return -1


def siginterrupt(number, flag):
    _check(number)


def pthread_sigmask(how, mask):
    return set()


def _refuse(*args):
    raise PermissionError(13, "signals and timers are not available in the Dag interpreter; set execution_timeout on the task")


raise_signal = pause = sigwait = setitimer = pthread_kill = _refuse


def getitimer(which):
    return (0.0, 0.0)


def alarm(seconds):
    if seconds:
        _refuse()
    return 0
