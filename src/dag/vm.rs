//! Builds the embedded Python: the frozen standard library, our frozen modules, and the native ones in place of the
//! operating system.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use rustpython_vm::builtins::{PyBaseExceptionRef, PyUtf8Str};
use rustpython_vm::frozen::FrozenLib;
use rustpython_vm::gc_state::gc_state;
use rustpython_vm::signal::{UserSignalSender, user_signal_channel};
use rustpython_vm::{AsObject, Interpreter, PyResult, Settings, VirtualMachine};

use super::frozen::{self, Index};
use super::world::{self, Registration, World};
use super::{native, posix};

/// The modules that stand in for Airflow and its relatives.
static STAND_INS: &FrozenLib = rustpython_vm::py_freeze!(dir = "python");

/// The modules that stand in for what the standard library wants from the operating system.
static OPERATING_SYSTEM: &FrozenLib = rustpython_vm::py_freeze!(dir = "stdlib");

/// Python's own library.
static STANDARD_LIBRARY: &FrozenLib = rustpython_pylib::FROZEN_STDLIB;
static STANDARD_LIBRARY_INDEX: Index<
    { frozen::entries(rustpython_pylib::FROZEN_STDLIB) },
    { frozen::names(rustpython_pylib::FROZEN_STDLIB) },
> = Index::of(rustpython_pylib::FROZEN_STDLIB);

/// Python calls that may be nested before RecursionError, as in CPython.
const RECURSION_LIMIT: usize = 1000;

/// Stack of the interpreter's thread. Reserved, not used: a page counts only once it is touched. It must hold
/// `MAX_RECURSION_LIMIT` nested calls of an unoptimised build.
pub(super) const STACK_BYTES: usize = 512 << 20;

/// What `sys.setrecursionlimit` may raise the limit to.
const MAX_RECURSION_LIMIT: usize = 10_000;

/// Held for reading by every interpreter that runs code. Whoever has it for writing may collect garbage.
///
/// The collector is one for all interpreters of the process and counts references while others change them: run beside
/// another thread's code it can take away what is in use. So it is off, and runs only when nothing else does.
static EXECUTING: RwLock<()> = RwLock::new(());

/// Tracked objects beyond which the garbage of a call is collected after it.
const WORTH_COLLECTING: usize = 200_000;

fn executing() -> RwLockReadGuard<'static, ()> {
    EXECUTING.read().unwrap_or_else(PoisonError::into_inner)
}

/// A running Python.
pub(super) struct Vm {
    interpreter: Interpreter,
    _registration: Option<Registration>,
}

/// Python started up wrongly: a fault of Updraft.
#[derive(Debug, thiserror::Error)]
#[error("the Dag interpreter did not start: {0}")]
pub(super) struct StartError(String);

impl Vm {
    /// Starts a Python on the current thread, which needs a stack of `STACK_BYTES`. Functions sent through the sender
    /// run between two of its instructions; an error they return is raised there.
    pub fn start(world: Arc<World>) -> Result<(Self, UserSignalSender), StartError> {
        let _executing = executing();
        gc_state().disable();
        let mut settings = Settings::default();
        settings.isolated = true;
        settings.ignore_environment = true;
        settings.import_site = false;
        settings.user_site_directory = false;
        settings.install_signal_handlers = false;
        settings.write_bytecode = false;
        settings.safe_path = true;
        settings.utf8_mode = 1;

        let (sender, receiver) = user_signal_channel();
        let registration = Rc::new(RefCell::new(None));
        let builder = Interpreter::builder(settings);
        let mut modules = rustpython_stdlib::stdlib_module_defs(&builder.ctx);
        modules.push(posix::module_def(&builder.ctx));
        modules.push(native::module_def(&builder.ctx));
        let interpreter = builder
            .add_native_modules(&modules)
            .add_frozen_modules(STANDARD_LIBRARY_INDEX.modules(STANDARD_LIBRARY))
            .add_frozen_modules(OPERATING_SYSTEM)
            .add_frozen_modules(STAND_INS)
            .init_hook({
                let registration = Rc::clone(&registration);
                move |vm| {
                    *registration.borrow_mut() = Some(world::register(vm, world));
                    vm.set_user_signal_channel(receiver);
                }
            })
            .build();
        let vm = Self {
            interpreter,
            _registration: registration.borrow_mut().take(),
        };
        vm.interpreter
            .enter(|vm| {
                vm.recursion_limit.set(RECURSION_LIMIT);
                vm.import("updraft_os", 0)?
                    .get_attr("install", vm)?
                    .call((MAX_RECURSION_LIMIT,), vm)
            })
            .map_err(|error| StartError(vm.describe(&error)))?;
        Ok((vm, sender))
    }

    /// Calls a function of a module with texts and numbers; it must return text.
    pub fn call(
        &self,
        module: &'static str,
        function: &'static str,
        arguments: Vec<Text>,
    ) -> Result<String, String> {
        let executing = executing();
        let answer = self.interpreter.enter(|vm| {
            let call = || -> PyResult<String> {
                let arguments: Vec<_> = arguments
                    .into_iter()
                    .map(|argument| match argument {
                        Text::Text(text) => vm.ctx.new_str(text).into(),
                        Text::Number(number) => vm.ctx.new_int(number).into(),
                    })
                    .collect();
                // `import` gives the outermost package, so these modules stand at the top.
                let answer = vm
                    .import(module, 0)?
                    .get_attr(function, vm)?
                    .call(arguments, vm)?;
                match answer.downcast::<PyUtf8Str>() {
                    Ok(text) => Ok(text.as_str().to_owned()),
                    Err(other) if vm.is_none(&other) => Ok(String::new()),
                    Err(other) => {
                        let class = other.class().name().to_string();
                        Err(vm.new_type_error(format!(
                            "{module}.{function} returned {class}, not text"
                        )))
                    }
                }
            };
            let answer = call().map_err(|error| describe(&error, vm));
            flush(vm);
            answer
        });
        drop(executing);
        let (young, middle, old) = gc_state().get_count();
        if young + middle + old > WORTH_COLLECTING
            && let Ok(_alone) = EXECUTING.try_write()
        {
            self.interpreter.enter(|_| gc_state().collect_force(2));
        }
        answer
    }

    /// Loading is over: what is unavailable must not be used any more.
    ///
    /// # Errors
    /// The module of the unavailable could not be reached: a fault of Updraft.
    pub fn loading_is_over(&self) -> Result<(), String> {
        self.interpreter.enter(|vm| {
            let set = || {
                vm.import("updraft_unavailable", 0)?
                    .set_attr("running", vm.ctx.new_bool(true), vm)
            };
            set().map_err(|error| describe(&error, vm))
        })
    }

    fn describe(&self, error: &PyBaseExceptionRef) -> String {
        self.interpreter.enter(|vm| describe(error, vm))
    }

    /// Ends this Python and frees what it holds, unless other interpreters keep running code.
    pub fn end(self) {
        self.interpreter
            .enter(|vm| vm.state.finalizing.store(true, Ordering::Release));
        for _ in 0..50 {
            if let Ok(_alone) = EXECUTING.try_write() {
                self.interpreter.enter(VirtualMachine::finalize_modules);
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Sends the last line of what was printed, if it has no end, to the log.
fn flush(vm: &VirtualMachine) {
    for stream in ["stdout", "stderr"] {
        // Dag code may have put anything there.
        if let Ok(stream) = vm.sys_module.get_attr(stream, vm) {
            let _ = vm.call_method(&stream, "flush", ());
        }
    }
}

/// An argument of `Vm::call`.
#[derive(Debug)]
pub(super) enum Text {
    Text(String),
    Number(u64),
}

/// An exception with its calls, for a fault of our own modules.
///
/// Without the source lines that Python would show: the virtual machine reads them from any file that the code names.
fn describe(error: &PyBaseExceptionRef, vm: &VirtualMachine) -> String {
    let mut text = error.class().name().to_string();
    if let Ok(message) = error.as_object().str(vm) {
        text += &format!(": {message}");
    }
    let mut traceback = error.__traceback__();
    while let Some(call) = traceback {
        let code = &call.frame.code;
        text += &format!(
            ", in {}:{} ({})",
            code.source_path(),
            call.lineno,
            code.obj_name
        );
        traceback = call.next.lock().clone();
    }
    text
}

#[cfg(test)]
mod tests;
