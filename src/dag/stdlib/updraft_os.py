"""The operating system as Dag code sees it: files of the bundle for reading, and clear refusals.

Runs once when the interpreter starts, before anything else is imported, so it stays small and imports little.
"""

import sys

import _frozen_importlib
import _imp
import _io
import _thread
import _updraft
import posix
import time

EACCES = 13
EBADF = 9


class stat_result(tuple):
    """`os.stat_result`."""

    __module__ = "os"
    n_fields = 19
    n_sequence_fields = 10
    n_unnamed_fields = 3

    def __new__(cls, fields):
        mode, ino, dev, nlink, uid, gid, size, atime, mtime, ctime = fields
        times = (atime // 1_000_000_000, mtime // 1_000_000_000, ctime // 1_000_000_000)
        self = super().__new__(cls, (mode, ino, dev, nlink, uid, gid, size) + times)
        self.st_atime_ns, self.st_mtime_ns, self.st_ctime_ns = atime, mtime, ctime
        return self

    st_mode = property(lambda self: self[0])
    st_ino = property(lambda self: self[1])
    st_dev = property(lambda self: self[2])
    st_nlink = property(lambda self: self[3])
    st_uid = property(lambda self: self[4])
    st_gid = property(lambda self: self[5])
    st_size = property(lambda self: self[6])
    st_atime = property(lambda self: self.st_atime_ns / 1e9)
    st_mtime = property(lambda self: self.st_mtime_ns / 1e9)
    st_ctime = property(lambda self: self.st_ctime_ns / 1e9)
    st_blksize = 4096
    st_blocks = property(lambda self: (self[6] + 511) // 512)
    st_rdev = 0

    def __repr__(self):
        return f"os.stat_result(st_mode={self[0]}, st_ino={self[1]}, st_size={self[6]})"


def stat(path, *, dir_fd=None, follow_symlinks=True):
    return stat_result(posix._stat(path) if follow_symlinks else posix._lstat(path))


def lstat(path, *, dir_fd=None):
    return stat_result(posix._lstat(path))


def fstat(fd):
    return stat_result(posix._stat(fd))


def readlink(path, *, dir_fd=None):
    return posix._readlink(path)


CONSTANTS = {
    "O_RDONLY": 0, "O_WRONLY": 1, "O_RDWR": 2, "O_CREAT": 0o100, "O_EXCL": 0o200, "O_TRUNC": 0o1000, "O_APPEND": 0o2000,
    "O_NONBLOCK": 0o4000, "O_DIRECTORY": 0o200000, "O_NOFOLLOW": 0o400000, "O_CLOEXEC": 0o2000000,
    "F_OK": 0, "X_OK": 1, "W_OK": 2, "R_OK": 4, "WNOHANG": 1, "WUNTRACED": 2,
}
WRITING = 1 | 2 | 0o100 | 0o1000 | 0o2000


def open_descriptor(path, flags, mode=0o777, *, dir_fd=None):
    if flags & WRITING:
        raise PermissionError(EACCES, NO_WRITING, path)
    return posix._open(path)


def access(path, mode, *, dir_fd=None, effective_ids=False, follow_symlinks=True):
    try:
        found = stat(path, follow_symlinks=follow_symlinks)
    except OSError:
        return False
    return not mode & 2 and (not mode & 1 or bool(found.st_mode & 0o111))


class DirEntry:
    """`os.DirEntry`."""

    __module__ = "os"

    def __init__(self, folder, name):
        self.name = name
        separator = b"/" if isinstance(name, bytes) else "/"
        self.path = name if folder in (".", b".") else folder.rstrip(separator) + separator + name
        self._stat = self._lstat = None

    def __fspath__(self):
        return self.path

    def __repr__(self):
        return f"<DirEntry {self.name!r}>"

    def stat(self, *, follow_symlinks=True):
        if not follow_symlinks:
            if self._lstat is None:
                self._lstat = lstat(self.path)
            return self._lstat
        if self._stat is None:
            self._stat = stat(self.path)
        return self._stat

    def inode(self):
        return self.stat(follow_symlinks=False).st_ino

    def _is(self, kind, follow_symlinks):
        try:
            return self.stat(follow_symlinks=follow_symlinks).st_mode & 0o170000 == kind
        except OSError:
            return False

    def is_dir(self, *, follow_symlinks=True):
        return self._is(0o040000, follow_symlinks)

    def is_file(self, *, follow_symlinks=True):
        return self._is(0o100000, follow_symlinks)

    def is_symlink(self):
        return self._is(0o120000, False)

    def is_junction(self):
        return False


class scandir:
    """`os.scandir`."""

    def __init__(self, path="."):
        path = "." if path is None else posix.fspath(path)
        self._entries = (DirEntry(path, name) for name in posix.listdir(path))

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._entries)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        self._entries = iter(())


def fspath(path):
    if isinstance(path, (str, bytes)):
        return path
    try:
        convert = type(path).__fspath__
    except AttributeError:
        raise TypeError(f"expected str, bytes or os.PathLike object, not {type(path).__name__}") from None
    return convert(path)


NO_WRITING = "Dag code on this worker can't write files; hand data on as an XCom, or run this task on a Python worker"
NO_PROCESSES = "Dag code on this worker can't start or signal processes; run this task on a Python worker"

WRITERS = (
    "mkdir rmdir remove unlink rename replace link symlink chmod lchmod chown lchown utime truncate ftruncate mkfifo mknod"
    " write writev pwrite fchmod fchown setxattr removexattr memfd_create"
).split()
RUNNERS = (
    "fork forkpty execv execve posix_spawn posix_spawnp kill killpg system waitpid wait wait3 wait4 waitid abort chroot"
    " pipe pipe2 dup dup2 openpty setuid setgid seteuid setegid setsid setpgid nice"
).split()


def _refusal(name, text):
    def refuse(*args, **kwargs):
        path = args[0] if args and isinstance(args[0], (str, bytes)) else None
        raise PermissionError(EACCES, text, *(() if path is None else (path,)))

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__module__ = "posix"
    return refuse


def _exit(status):
    raise SystemExit(status)


class FileIO(_io._RawIOBase):
    """`io.FileIO`, for reading."""

    __module__ = "_io"

    def __init__(self, file, mode="r", closefd=True, opener=None):
        self._fd = -1
        self._closefd = closefd
        self.name = file
        if mode.strip("b") != "r":
            raise PermissionError(EACCES, NO_WRITING, file)
        if isinstance(file, int):
            self._fd = file
        elif opener is not None:
            self._fd = opener(file, 0)
        else:
            self._fd = posix._open(file)
            if posix._stat(self._fd)[0] & 0o170000 == 0o040000:
                self.close()
                raise IsADirectoryError(21, "Is a directory", file)

    mode = "rb"

    @property
    def closefd(self):
        return self._closefd

    def _open_fd(self):
        if self.closed:
            raise ValueError("I/O operation on closed file")
        return self._fd

    def read(self, size=-1):
        return posix.read(self._open_fd(), -1 if size is None else size)

    def readall(self):
        return posix.read(self._open_fd(), -1)

    def readinto(self, buffer):
        view = memoryview(buffer).cast("B")
        data = posix.read(self._open_fd(), len(view))
        view[: len(data)] = data
        return len(data)

    def seek(self, position, whence=0):
        return posix.lseek(self._open_fd(), position, whence)

    def tell(self):
        return posix.lseek(self._open_fd(), 0, 1)

    def fileno(self):
        return self._open_fd()

    def readable(self):
        self._open_fd()
        return True

    def seekable(self):
        self._open_fd()
        return True

    def writable(self):
        self._open_fd()
        return False

    def isatty(self):
        self._open_fd()
        return False

    def close(self):
        if not self.closed:
            try:
                super().close()
            finally:
                if self._closefd and self._fd >= 0:
                    fd, self._fd = self._fd, -1
                    posix.close(fd)

    def __repr__(self):
        return f"<_io.FileIO name={self.name!r} mode='rb'>"


def open(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
    """`open`, for reading files of the bundle."""
    if not isinstance(file, int):
        file = fspath(file)
    if not isinstance(mode, str):
        raise TypeError(f"open() argument 'mode' must be str, not {type(mode).__name__}")
    kinds = set(mode)
    if len(kinds) != len(mode) or kinds - set("rwxabt+") or len(kinds & set("rwxa")) != 1 or {"b", "t"} <= kinds:
        raise ValueError(f"invalid mode: {mode!r}")
    binary = "b" in kinds
    if binary and (encoding is not None or errors is not None or newline is not None):
        raise ValueError("binary mode doesn't take an encoding, errors or newline argument")
    if "r" not in kinds or "+" in kinds:
        raise PermissionError(EACCES, NO_WRITING, file)
    raw = FileIO(file, "r", closefd, opener)
    if buffering == 0:
        if not binary:
            raw.close()
            raise ValueError("can't have unbuffered text I/O")
        return raw
    buffer = _io.BufferedReader(raw, buffering if buffering > 1 else 8192)
    if binary:
        return buffer
    try:
        text = _io.TextIOWrapper(buffer, encoding or "utf-8", errors, newline)
    except BaseException:
        buffer.close()
        raise
    text.mode = mode
    return text


def open_code(path):
    return open(path, "rb")


class LogStream(_io._TextIOBase):
    """`sys.stdout` and `sys.stderr`: each line is a record of the task log."""

    encoding = "utf-8"
    errors = "backslashreplace"
    newlines = None

    def __init__(self, name, level):
        self.name = f"<{name}>"
        self.mode = "w"
        self._logger = f"task.{name}"
        self._level = level
        self._rest = ""

    def writable(self):
        return True

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._send(line)
        return len(text)

    def _send(self, line):
        # A lone surrogate has no place in the log.
        line = line.encode("utf-8", "backslashreplace").decode("utf-8")
        _updraft.log(self._logger, self._level, line, "{}")

    def flush(self):
        if self._rest:
            line, self._rest = self._rest, ""
            self._send(line)

    def isatty(self):
        return False


def excepthook(kind, error, trace):
    import updraft_log

    updraft_log.excepthook(kind, error, trace)


def unraisablehook(unraisable):
    import updraft_log

    updraft_log.unraisablehook(unraisable)


class AfterImport:
    """Finds the modules that report something, and connects them to the task log once they are imported."""

    def __init__(self):
        self.waiting = {"logging", "warnings", "threading"}

    def find_spec(self, name, path=None, target=None):
        if name == "importlib":
            # It does without the importers of files only where it can bring its own.
            install_file_importers()
        if name not in self.waiting:
            return None
        self.waiting.remove(name)
        spec = _frozen_importlib.FrozenImporter.find_spec(name)
        spec.loader = ThenConnect(spec.loader)
        return spec


class OwnFirst:
    """Finds the Dag's own packages of names that people give to them, before the libraries of these names."""

    names = ("agents", "openai")

    def find_spec(self, name, path=None, target=None):
        if name not in self.names or not self._is_there(name):
            return None
        return install_file_importers().find_spec(name, path, target)

    @staticmethod
    def _is_there(name):
        for folder in sys.path:
            for file in (f"{folder}/{name}/__init__.py", f"{folder}/{name}.py"):
                try:
                    posix._stat(file)
                except OSError:
                    continue
                return True
        return False


class FilesWhenNeeded:
    """Brings in the importers of files once something is imported that is not frozen: most Dag files import no such thing."""

    def find_spec(self, name, path=None, target=None):
        if name in sys.stdlib_module_names:
            # The standard library asks for its accelerators; files of these names would come after it anyway.
            return None
        return install_file_importers().find_spec(name, path, target)


def install_file_importers():
    """Lets files be imported; returns their finder, which takes the place of `FilesWhenNeeded`."""
    if _frozen_importlib._bootstrap_external is None:
        _frozen_importlib._install_external_importers()
        finder = sys.meta_path.pop()
        sys.meta_path[:] = [finder if isinstance(other, FilesWhenNeeded) else other for other in sys.meta_path]
    return _frozen_importlib._bootstrap_external.PathFinder


class ThenConnect:
    """A loader that executes the module, and then has it connected."""

    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        import updraft_log

        updraft_log.AFTER[module.__name__](module)


def _check_nesting(source, filename):
    """Refuses source whose compilation would overflow the native stack, which no exception can report."""
    if isinstance(source, (bytes, bytearray)):
        source = bytes(source).decode("utf-8", "replace")
    if isinstance(source, str):
        # A lone surrogate is the compiler's business.
        excess = _updraft.nesting_excess(source.encode("utf-8", "replace").decode("utf-8"))
        if excess is not None:
            raise SyntaxError(f"too complex: {excess}", (filename, 1, 0, ""))


def _checked_compile(compile_anything):
    def compile(source, filename, mode, flags=0, dont_inherit=False, optimize=-1, **others):
        _check_nesting(source, filename)
        return compile_anything(source, filename, mode, flags, dont_inherit, optimize, **others)

    return compile


def _checked_run(run, name):
    def checked(source, /, globals=None, locals=None, **closure):
        _check_nesting(source, "<string>")
        if globals is None:
            caller = sys._getframe(1)
            globals = caller.f_globals
            if locals is None:
                locals = caller.f_locals
        return run(source, globals, globals if locals is None else locals, **closure)

    checked.__name__ = checked.__qualname__ = name
    return checked


def _checked_scanner(make_scanner):
    def make_checked_scanner(context):
        scan = make_scanner(context)

        def scan_once(text, start):
            if isinstance(text, str) and _updraft.json_is_deeper(text, start, sys.getrecursionlimit()):
                raise RecursionError("maximum recursion depth exceeded while decoding a JSON document")
            return scan(text, start)

        return scan_once

    return make_checked_scanner


def _limited(set_limit, most):
    def setrecursionlimit(limit):
        set_limit(min(limit, most) if isinstance(limit, int) else limit)

    return setrecursionlimit


def install(most_recursion):
    """Puts everything in its place."""
    for name, value in CONSTANTS.items():
        setattr(posix, name, value)
    posix.environ = posix._environ()
    posix._have_functions = []
    for name, value in (
        ("stat", stat), ("lstat", lstat), ("fstat", fstat), ("readlink", readlink), ("open", open_descriptor),
        ("access", access), ("scandir", scandir), ("DirEntry", DirEntry), ("stat_result", stat_result),
        ("fspath", fspath), ("_exit", _exit),
    ):
        setattr(posix, name, value)
    for name in WRITERS:
        setattr(posix, name, _refusal(name, NO_WRITING))
    for name in RUNNERS:
        setattr(posix, name, _refusal(name, NO_PROCESSES))
    posix.error = OSError
    posix.umask = lambda mask: 0o022
    posix.chdir = _refusal("chdir", "the working folder of Dag code can't be changed")
    posix.putenv = lambda name, value: None
    posix.unsetenv = lambda name: None
    posix.getgid = posix.getegid = posix.geteuid = posix.getuid
    posix.isatty = lambda fd: False
    posix.device_encoding = lambda fd: None
    posix.get_terminal_size = _refusal("get_terminal_size", "there is no terminal")
    posix.register_at_fork = lambda **hooks: None
    posix.strerror = lambda code: f"error {code}"
    posix.fsync = posix.fdatasync = lambda fd: None
    posix.get_inheritable = lambda fd: False
    posix.set_inheritable = lambda fd, inheritable: None
    posix.uname = lambda: ("Linux", "localhost", "", "", "")
    posix.waitstatus_to_exitcode = lambda status: status >> 8 if not status & 0x7F else -(status & 0x7F)
    posix.WIFEXITED = lambda status: not status & 0x7F
    posix.WEXITSTATUS = posix.WSTOPSIG = lambda status: status >> 8 & 0xFF
    posix.WIFSIGNALED = lambda status: 0 < status & 0x7F < 0x7F
    posix.WTERMSIG = lambda status: status & 0x7F
    posix.WIFSTOPPED = lambda status: status & 0xFF == 0x7F
    posix.times = lambda: (0.0, 0.0, 0.0, 0.0, time.monotonic())

    import _json
    import _hashlib  # noqa: F401 (defines the types that _sha1, _md5 and the others make, and don't import)
    import builtins

    # The virtual machine has one import lock for the whole process; whoever is stopped while holding it would stop all
    # other interpreters as well.
    lock = _thread.RLock()
    _imp.acquire_lock, _imp.release_lock, _imp.lock_held = lock.acquire, lock.release, lock._is_owned

    builtins.compile = _checked_compile(builtins.compile)
    builtins.eval, builtins.exec = _checked_run(eval, "eval"), _checked_run(exec, "exec")
    _json.make_scanner = _checked_scanner(_json.make_scanner)
    _io.FileIO = FileIO
    _io.open = builtins.open = open
    _io.open_code = open_code
    io = sys.modules.get("io")
    if io is not None:
        io.FileIO, io.open, io.open_code = FileIO, open, open_code

    time.sleep = _updraft.sleep
    sys.setrecursionlimit = _limited(sys.setrecursionlimit, most_recursion)
    sys.stdout = sys.__stdout__ = LogStream("stdout", "info")
    sys.stderr = sys.__stderr__ = LogStream("stderr", "error")
    sys.excepthook = sys.__excepthook__ = excepthook
    sys.unraisablehook = sys.__unraisablehook__ = unraisablehook
    sys.dont_write_bytecode = True
    sys.path[:] = []
    sys.argv = ["airflow"]

    import updraft_unavailable

    sys.meta_path.insert(0, OwnFirst())
    sys.meta_path.insert(0, AfterImport())
    sys.meta_path += [FilesWhenNeeded(), updraft_unavailable.Finder()]
