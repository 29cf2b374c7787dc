//! Python's `posix` module as far as Dag code may have it: the environment, the bundle's files for reading, nothing else.
//!
//! `stdlib/updraft_os.py` completes it with what is easier said in Python: `stat_result`, `scandir`, and the refusals.

use rustpython_vm::pymodule;

pub(super) use module::module_def;

#[pymodule(name = "posix")]
mod module {
    use std::io::SeekFrom;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::os::unix::fs::MetadataExt;
    use std::path::PathBuf;

    use rustpython_vm::builtins::{PyBaseExceptionRef, PyBytes, PyDictRef, PyStr};
    use rustpython_vm::function::OptionalArg;
    use rustpython_vm::{PyObjectRef, PyResult, VirtualMachine};

    use crate::dag::files::FileError;
    use crate::dag::world;

    /// What `os.environ` starts with.
    #[pyfunction]
    fn _environ(vm: &VirtualMachine) -> PyResult<PyDictRef> {
        let environ = vm.ctx.new_dict();
        for (name, value) in &world::of(vm)?.environment {
            let name: PyObjectRef = vm.ctx.new_bytes(name.clone().into_bytes()).into();
            let value: PyObjectRef = vm.ctx.new_bytes(value.clone().into_bytes()).into();
            environ.set_item(&*name, value, vm)?;
        }
        Ok(environ)
    }

    /// The path in an argument: text, bytes or something with `__fspath__`.
    fn path(argument: &PyObjectRef, vm: &VirtualMachine) -> PyResult<PathBuf> {
        let argument =
            match vm.get_attribute_opt(argument.class().to_owned().into(), "__fspath__")? {
                Some(_) => vm.call_method(argument, "__fspath__", ())?,
                None => argument.clone(),
            };
        let path = if let Some(text) = argument.downcast_ref::<PyStr>() {
            PathBuf::from(vm.fsencode(text)?.into_owned())
        } else if let Some(bytes) = argument.downcast_ref::<PyBytes>() {
            PathBuf::from(std::ffi::OsStr::from_bytes(bytes.as_bytes()))
        } else {
            return Err(vm.new_type_error(format!(
                "expected str, bytes or os.PathLike object, not {}",
                argument.class().name()
            )));
        };
        if path.as_os_str().as_bytes().contains(&0) {
            return Err(vm.new_value_error("embedded null byte"));
        }
        Ok(path)
    }

    /// The `OSError` subclass for `error`, with the path as its `filename`.
    fn os_error(
        error: &FileError,
        argument: Option<&PyObjectRef>,
        vm: &VirtualMachine,
    ) -> PyBaseExceptionRef {
        let (errno, text) = match error {
            FileError::Outside => (nix::errno::Errno::EACCES as i32, error.to_string()),
            FileError::Io(io) => match io.raw_os_error() {
                Some(errno) => (errno, nix::errno::Errno::from_raw(errno).desc().to_owned()),
                None => (nix::errno::Errno::EIO as i32, io.to_string()),
            },
        };
        let mut arguments: Vec<PyObjectRef> =
            vec![vm.ctx.new_int(errno).into(), vm.ctx.new_str(text).into()];
        arguments.extend(argument.cloned());
        vm.invoke_exception(vm.ctx.exceptions.os_error.to_owned(), arguments)
            .unwrap_or_else(|error| error)
    }

    fn names(
        found: Vec<std::ffi::OsString>,
        as_bytes: bool,
        vm: &VirtualMachine,
    ) -> Vec<PyObjectRef> {
        found
            .into_iter()
            .map(|name| match as_bytes {
                true => vm.ctx.new_bytes(name.into_vec()).into(),
                false => vm.fsdecode(name).into(),
            })
            .collect()
    }

    /// Mode, inode, device, links, owner, group, size; then the times of access, change and status in nanoseconds.
    fn fields(metadata: &std::fs::Metadata, vm: &VirtualMachine) -> PyObjectRef {
        let time = |seconds: i64, rest: i64| {
            vm.new_pyobj(seconds.saturating_mul(1_000_000_000).saturating_add(rest))
        };
        let fields = vec![
            vm.new_pyobj(metadata.mode()),
            vm.new_pyobj(metadata.ino()),
            vm.new_pyobj(metadata.dev()),
            vm.new_pyobj(metadata.nlink()),
            vm.new_pyobj(metadata.uid()),
            vm.new_pyobj(metadata.gid()),
            vm.new_pyobj(metadata.size()),
            time(metadata.atime(), metadata.atime_nsec()),
            time(metadata.mtime(), metadata.mtime_nsec()),
            time(metadata.ctime(), metadata.ctime_nsec()),
        ];
        vm.ctx.new_list(fields).into()
    }

    #[pyfunction]
    fn _stat(argument: PyObjectRef, vm: &VirtualMachine) -> PyResult {
        let world = world::of(vm)?;
        let found =
            if let Some(descriptor) = argument.downcast_ref::<rustpython_vm::builtins::PyInt>() {
                world.files.fstat(descriptor.try_to_primitive(vm)?)
            } else {
                world.files.stat(&path(&argument, vm)?)
            };
        found
            .map(|metadata| fields(&metadata, vm))
            .map_err(|error| os_error(&error, Some(&argument), vm))
    }

    #[pyfunction]
    fn _lstat(argument: PyObjectRef, vm: &VirtualMachine) -> PyResult {
        let found = world::of(vm)?.files.lstat(&path(&argument, vm)?);
        found
            .map(|metadata| fields(&metadata, vm))
            .map_err(|error| os_error(&error, Some(&argument), vm))
    }

    #[pyfunction]
    fn listdir(
        argument: OptionalArg<PyObjectRef>,
        vm: &VirtualMachine,
    ) -> PyResult<Vec<PyObjectRef>> {
        let argument = match argument {
            OptionalArg::Present(argument) if !vm.is_none(&argument) => argument,
            _ => vm.ctx.new_str(".").into(),
        };
        let found = world::of(vm)?.files.list(&path(&argument, vm)?);
        let as_bytes = argument.downcast_ref::<PyBytes>().is_some();
        found
            .map(|found| names(found, as_bytes, vm))
            .map_err(|error| os_error(&error, Some(&argument), vm))
    }

    #[pyfunction]
    fn _readlink(argument: PyObjectRef, vm: &VirtualMachine) -> PyResult {
        let target = world::of(vm)?
            .files
            .read_link(&path(&argument, vm)?)
            .map_err(|error| os_error(&error, Some(&argument), vm))?;
        Ok(match argument.downcast_ref::<PyBytes>() {
            Some(_) => vm.ctx.new_bytes(target.into_os_string().into_vec()).into(),
            None => vm.fsdecode(target).into(),
        })
    }

    #[pyfunction]
    fn _open(argument: PyObjectRef, vm: &VirtualMachine) -> PyResult<i32> {
        let world = world::of(vm)?;
        world
            .files
            .open(&path(&argument, vm)?)
            .map_err(|error| os_error(&error, Some(&argument), vm))
    }

    #[pyfunction]
    fn read(descriptor: i32, count: i64, vm: &VirtualMachine) -> PyResult<Vec<u8>> {
        // Negative: the rest of the file.
        let count = usize::try_from(count).ok();
        world::of(vm)?
            .files
            .read(descriptor, count)
            .map_err(|error| os_error(&error, None, vm))
    }

    #[pyfunction]
    fn lseek(descriptor: i32, position: i64, whence: i32, vm: &VirtualMachine) -> PyResult<u64> {
        let to = match (whence, u64::try_from(position)) {
            (0, Ok(position)) => SeekFrom::Start(position),
            (1, _) => SeekFrom::Current(position),
            (2, _) => SeekFrom::End(position),
            _ => return Err(vm.new_value_error("invalid position or whence")),
        };
        world::of(vm)?
            .files
            .seek(descriptor, to)
            .map_err(|error| os_error(&error, None, vm))
    }

    #[pyfunction]
    fn close(descriptor: i32, vm: &VirtualMachine) -> PyResult<()> {
        world::of(vm)?
            .files
            .close(descriptor)
            .map_err(|error| os_error(&error, None, vm))
    }

    #[pyfunction]
    fn getcwd(vm: &VirtualMachine) -> PyResult {
        Ok(vm.fsdecode(world::of(vm)?.files.cwd()).into())
    }

    #[pyfunction]
    fn getcwdb(vm: &VirtualMachine) -> PyResult<Vec<u8>> {
        Ok(world::of(vm)?.files.cwd().as_os_str().as_bytes().to_vec())
    }

    #[pyfunction]
    fn getpid() -> u32 {
        std::process::id()
    }

    #[pyfunction]
    fn getppid() -> u32 {
        std::os::unix::process::parent_id()
    }

    #[pyfunction]
    fn getuid() -> u32 {
        nix::unistd::getuid().as_raw()
    }

    #[pyfunction]
    fn cpu_count() -> usize {
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
    }

    #[pyfunction]
    fn urandom(count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count);
        while bytes.len() < count {
            bytes.extend(rustpython_vm::common::rand::os_random::<32>());
        }
        bytes.truncate(count);
        bytes
    }
}
