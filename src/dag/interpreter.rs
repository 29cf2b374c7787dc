//! The actor around the embedded Python: loads a Dag file on a thread of its own and keeps what must be called later.
//!
//! Python objects never leave that thread; texts go in and out. The Python side is `python/updraft_runtime.py`.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Once, mpsc as std_mpsc};
use std::time::{Duration, Instant};

use rustpython_vm::VirtualMachine;
use rustpython_vm::builtins::{PyBaseException, PyBaseExceptionRef};
use rustpython_vm::signal::UserSignalSender;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::definitions::{DagFile, Handle};
use super::error::{LoadError, PythonError, TraceFrame};
use super::files::ReadableFiles;
use super::host::Host;
use super::nesting;
use super::source;
use super::vm::{STACK_BYTES, Text, Vm};
use super::world::{World, visible_environment};

/// How Dag files are read.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Root of the bundle: stands on `sys.path`, and everything under it may be read.
    pub bundle_root: PathBuf,
    /// `[core] dagbag_import_timeout`.
    pub timeout: Duration,
    /// A larger Dag file is refused.
    pub max_file_bytes: u64,
    /// Further folders that Dag code may read.
    pub readable: Vec<PathBuf>,
}

impl LoadOptions {
    /// Airflow's default of 30 s; no file beyond 8 MB, and nothing to read but the bundle.
    pub fn new(bundle_root: impl Into<PathBuf>) -> Self {
        Self {
            bundle_root: bundle_root.into(),
            timeout: Duration::from_secs(30),
            max_file_bytes: 8_000_000,
            readable: Vec::new(),
        }
    }
}

/// A loaded Dag file's Python, on its own thread. Dropping it stops what runs there, ends the thread and frees the memory.
#[derive(Debug)]
pub struct Interpreter {
    requests: Option<mpsc::UnboundedSender<Request>>,
    /// How many requests were made.
    made: AtomicU64,
    /// `None` when Dag code serves the requests itself: it is stopped as a whole.
    stopper: Option<Arc<Stopper>>,
}

/// Why code that runs is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// SIGTERM: the operator's `on_kill`, then `AirflowTaskTerminated`.
    Killed,
    /// `execution_timeout` has passed: `AirflowTaskTimeout`.
    TimedOut,
}

impl Interruption {
    /// The function of `python/updraft_task.py` that makes the exception.
    fn maker(self) -> &'static str {
        match self {
            Self::Killed => "kill",
            Self::TimedOut => "time_out",
        }
    }
}

#[derive(Debug)]
struct Request {
    /// Counted from 1.
    number: u64,
    function: &'static str,
    arguments: Vec<Text>,
    answer: oneshot::Sender<Result<String, String>>,
}

impl Interpreter {
    /// Starts an interpreter, loads `file` in it, and gives what the file defines. Blocks.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load(
        file: &Path,
        options: LoadOptions,
        host: Arc<dyn Host>,
    ) -> Result<(DagFile, Self), LoadError> {
        let file = &std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let shown = file.display().to_string();
        let internal = |message: String| LoadError::Internal {
            file: shown.clone(),
            message,
        };
        let source = source::read(file, options.max_file_bytes)?;
        if let Some(what) = nesting::excess(&source) {
            return Err(LoadError::TooDeep { file: shown, what });
        }
        let world = Arc::new(World {
            files: ReadableFiles::new(&options.bundle_root, &options.readable),
            dag_file: file.to_owned(),
            source,
            bundle_root: std::path::absolute(&options.bundle_root).unwrap_or(options.bundle_root),
            environment: visible_environment(std::env::vars_os().filter_map(|(name, value)| {
                Some((name.into_string().ok()?, value.into_string().ok()?))
            })),
            host,
        });

        hush_panics();
        let start = Instant::now();
        let (requests, inbox) = mpsc::unbounded_channel();
        let (started, ready) = std_mpsc::sync_channel(1);
        std::thread::Builder::new()
            .name(THREAD.to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || run(world, &started, inbox))
            .map_err(|error| internal(format!("no thread for the Dag interpreter: {error}")))?;
        let stopper = match ready.recv() {
            Ok(Ok(stopper)) => stopper,
            Ok(Err(message)) => return Err(internal(message)),
            Err(std_mpsc::RecvError) => {
                return Err(internal("the Dag interpreter did not start".to_owned()));
            }
        };
        let interpreter = Self {
            requests: Some(requests),
            made: AtomicU64::new(0),
            stopper: Some(Arc::clone(&stopper)),
        };
        let seconds = options.timeout.as_secs_f64();
        let timed_out = |at| LoadError::TimedOut {
            file: shown.clone(),
            seconds,
            at,
        };

        let answer = interpreter
            .send("load", vec![Text::Text(shown.clone())])
            .map(|(_, answer)| answer)
            .map_err(|error| internal(error.message))?;
        let rest = options.timeout.saturating_sub(start.elapsed());
        let (answer, late) = match wait(answer, rest) {
            Waited::Answer(answer) => (answer, false),
            Waited::TooLong(answer) => {
                stopper.stop();
                match wait(answer, Stopper::PATIENCE) {
                    Waited::Answer(answer) => (answer, true),
                    // It sits in native code. The thread is left behind: a task process ends soon anyway.
                    Waited::TooLong(_) => return Err(timed_out(None)),
                }
            }
        };
        let failure = match answer
            .map_err(&internal)
            .and_then(|text| outcome(&text).map_err(&internal))
        {
            Ok(Ok(value)) if !late => {
                let file = serde_json::from_value(value).map_err(|error| {
                    internal(format!("the Dag file's description is malformed: {error}"))
                })?;
                return Ok((file, interpreter));
            }
            Ok(Ok(_)) => return Err(timed_out(None)),
            Err(_) if late => return Err(timed_out(None)),
            Err(error) => return Err(error),
            Ok(Err(failure)) => failure,
        };
        Err(if late {
            let inside = |frame: &&TraceFrame| {
                Path::new(&frame.filename).is_absolute() || frame.filename == shown
            };
            timed_out(failure.trace.iter().rev().find(inside).cloned())
        } else if let (true, Some(file)) = (failure.is("SyntaxError"), &failure.more.file) {
            LoadError::Syntax {
                file: file.clone(),
                line: failure.more.line.unwrap_or(0),
                class: failure.name().to_owned(),
                message: failure.message.clone(),
            }
        } else if failure.is("RecursionError") {
            LoadError::Recursion {
                file: shown.clone(),
                error: Box::new(failure),
            }
        } else {
            LoadError::Exception {
                file: shown.clone(),
                error: Box::new(failure),
            }
        })
    }

    /// Calls a function that stayed in the interpreter. `args`, `kwargs` and the result are in XCom wire form;
    /// `context` is Airflow's context as JSON. When the returned future is dropped, the call is stopped.
    ///
    /// # Errors
    /// The exception that the function raised.
    pub async fn call(
        &self,
        handle: Handle,
        args: Value,
        kwargs: Value,
        context: &Value,
    ) -> Result<Value, PythonError> {
        let arguments = vec![
            Text::Number(handle.0),
            Text::Text(args.to_string()),
            Text::Text(kwargs.to_string()),
            Text::Text(context.to_string()),
        ];
        self.ask("call", arguments).await
    }

    /// The value, in XCom wire form, of an `Argument::Object` that must be resolved at run time.
    ///
    /// # Errors
    /// The exception that a function in it raised.
    pub async fn resolve(&self, handle: Handle, context: &Value) -> Result<Value, PythonError> {
        self.ask(
            "resolve",
            vec![Text::Number(handle.0), Text::Text(context.to_string())],
        )
        .await
    }

    /// A step of a task's try: one of the functions of `python/updraft_task.py` with its request.
    ///
    /// # Errors
    /// The exception that Dag code raised.
    pub async fn step(&self, step: &str, request: &Value) -> Result<Value, PythonError> {
        let arguments = vec![Text::Text(step.to_owned()), Text::Text(request.to_string())];
        self.ask("step", arguments).await
    }

    /// Describes an output type that stayed, or validates an answer by it; `operation` and `payload` are those of
    /// `updraft_output.py`.
    ///
    /// # Errors
    /// The exception that Dag code raised.
    pub async fn output(
        &self,
        handle: Handle,
        operation: &str,
        payload: &Value,
        context: &Value,
    ) -> Result<Value, PythonError> {
        self.operate("output", handle, operation, payload, context)
            .await
    }

    /// Does one thing with a toolset or a filter that stayed; `operation` and `payload` are those of
    /// `updraft_toolsets.py`.
    ///
    /// # Errors
    /// The exception that Dag code raised.
    pub async fn toolset(
        &self,
        handle: Handle,
        operation: &str,
        payload: &Value,
        context: &Value,
    ) -> Result<Value, PythonError> {
        self.operate("toolset", handle, operation, payload, context)
            .await
    }

    async fn operate(
        &self,
        function: &'static str,
        handle: Handle,
        operation: &str,
        payload: &Value,
        context: &Value,
    ) -> Result<Value, PythonError> {
        let arguments = vec![
            Text::Number(handle.0),
            Text::Text(operation.to_owned()),
            Text::Text(payload.to_string()),
            Text::Text(context.to_string()),
        ];
        self.ask(function, arguments).await
    }

    /// Raises an exception, once, in the code that runs; nothing happens when none does.
    pub fn interrupt(&self, interruption: Interruption, text: &str) {
        if let Some(stopper) = &self.stopper {
            stopper.raise(None, Some((interruption, text.to_owned())));
        }
    }

    /// A second way to this interpreter, for what its own code waits for: that code takes the requests and answers them,
    /// while those of the first way wait for the code to end.
    #[must_use]
    pub fn served_by_its_code() -> (Self, Served) {
        let (requests, inbox) = mpsc::unbounded_channel();
        let interpreter = Self {
            requests: Some(requests),
            made: AtomicU64::new(0),
            stopper: None,
        };
        let served = Served {
            inbox,
            waiting: HashMap::new(),
        };
        (interpreter, served)
    }

    async fn ask(
        &self,
        function: &'static str,
        arguments: Vec<Text>,
    ) -> Result<Value, PythonError> {
        let (number, answer) = self.send(function, arguments)?;
        // Dropped after the answer: a request that nobody waits for and that has not begun never does.
        let mut guard = StopWhenDropped(self.stopper.as_ref().map(|stopper| (stopper, number)));
        let answer = answer.await;
        guard.0 = None;
        let text = answer
            .map_err(|_| PythonError::internal("the Dag interpreter has ended"))?
            .map_err(PythonError::internal)?;
        outcome(&text).map_err(PythonError::internal)?
    }

    fn send(
        &self,
        function: &'static str,
        arguments: Vec<Text>,
    ) -> Result<(u64, oneshot::Receiver<Result<String, String>>), PythonError> {
        let (answer, receiver) = oneshot::channel();
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        self.requests
            .as_ref()
            .and_then(|requests| {
                requests
                    .send(Request {
                        number,
                        function,
                        arguments,
                        answer,
                    })
                    .ok()
            })
            .ok_or_else(|| PythonError::internal("the Dag interpreter has ended"))?;
        Ok((number, receiver))
    }
}

impl Drop for Interpreter {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(stopper) = &self.stopper {
            stopper.stop();
        }
    }
}

/// Requests that Dag code serves while it waits for whoever makes them.
#[derive(Debug)]
pub struct Served {
    inbox: mpsc::UnboundedReceiver<Request>,
    waiting: HashMap<u64, oneshot::Sender<Result<String, String>>>,
}

impl Served {
    /// The next request as `{"number", "function", "arguments"}`: a function of `updraft_runtime.py`. `None` when nobody
    /// is left to ask.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            let request = self.inbox.recv().await?;
            if request.answer.is_closed() {
                continue;
            }
            let arguments: Vec<Value> = request
                .arguments
                .into_iter()
                .map(|argument| match argument {
                    Text::Text(text) => text.into(),
                    Text::Number(number) => number.into(),
                })
                .collect();
            self.waiting.insert(request.number, request.answer);
            return Some(json!({
                "number": request.number,
                "function": request.function,
                "arguments": arguments,
            }));
        }
    }

    /// Hands over what the function gave.
    pub fn answer(&mut self, number: u64, text: String) {
        if let Some(waiting) = self.waiting.remove(&number) {
            // Whoever asked may have stopped waiting.
            let _ = waiting.send(Ok(text));
        }
    }
}

/// Stops a call, if it is the one that runs, when its caller stops waiting for it.
struct StopWhenDropped<'a>(Option<(&'a Arc<Stopper>, u64)>);

impl Drop for StopWhenDropped<'_> {
    fn drop(&mut self) {
        if let Some((stopper, number)) = self.0 {
            stopper.raise(Some(number), None);
        }
    }
}

/// `{"ok": ..}` or `{"error": ..}`.
fn outcome(text: &str) -> Result<Result<Value, PythonError>, String> {
    let malformed = |why: String| format!("the stand-in modules answered wrongly: {why}");
    let mut answer: Value =
        serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
    if let Some(value) = answer.get_mut("ok") {
        return Ok(Ok(value.take()));
    }
    match answer.get_mut("error") {
        Some(error) => {
            let mut error: PythonError = serde_json::from_value(error.take())
                .map_err(|error| malformed(error.to_string()))?;
            error.tidy();
            Ok(Err(error))
        }
        None => Err(malformed("neither a value nor an error".to_owned())),
    }
}

enum Waited {
    Answer(Result<String, String>),
    TooLong(oneshot::Receiver<Result<String, String>>),
}

/// Waits for an answer without a runtime; `load` is blocking.
fn wait(mut answer: oneshot::Receiver<Result<String, String>>, at_most: Duration) -> Waited {
    let start = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        match answer.try_recv() {
            Ok(answer) => return Waited::Answer(answer),
            Err(oneshot::error::TryRecvError::Closed) => {
                return Waited::Answer(Err("the Dag interpreter has ended".to_owned()));
            }
            Err(oneshot::error::TryRecvError::Empty) if start.elapsed() >= at_most => {
                return Waited::TooLong(answer);
            }
            Err(oneshot::error::TryRecvError::Empty) => std::thread::sleep(pause),
        }
        pause = (pause * 2).min(Duration::from_millis(1));
    }
}

/// Stops the Python code that runs, from another thread.
struct Stopper {
    signals: UserSignalSender,
    /// Number of the request that runs; 0 when none does.
    running: AtomicU64,
}

impl std::fmt::Debug for Stopper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stopper")
            .field("running", &self.running)
            .finish_non_exhaustive()
    }
}

impl Stopper {
    /// How long the code is given to unwind by itself.
    const CALM: Duration = Duration::from_secs(2);
    /// How long it may take at all before it is given up.
    const PATIENCE: Duration = Duration::from_secs(5);

    /// Raises in the code that runs, again and again until it ends: it may catch the exception, and the flag that makes
    /// the virtual machine look for signals is shared by all interpreters of the process, so that another can take it.
    fn stop(self: &Arc<Self>) {
        self.raise(None, None);
    }

    /// Raises what is asked for, once; without it, KeyboardInterrupt until the code gives in. Of `only`, if it runs, or
    /// of whatever runs.
    fn raise(self: &Arc<Self>, only: Option<u64>, what: Option<(Interruption, String)>) {
        let request = self.running.load(Ordering::SeqCst);
        if request == 0 || only.is_some_and(|only| only != request) {
            return;
        }
        let stopper = Arc::clone(self);
        let raise = move || {
            let start = Instant::now();
            // An interruption waits for the end of whatever native call is under way.
            let patience = if what.is_some() {
                Self::PATIENCE * 12
            } else {
                Self::PATIENCE
            };
            let raised = Arc::new(AtomicBool::new(false));
            while stopper.running.load(Ordering::Acquire) == request && start.elapsed() < patience {
                // First once, with time to unwind and to tell where it was; then so fast that handlers are interrupted.
                let calm = what.is_some() || start.elapsed() < Self::CALM;
                if calm && what.is_some() && raised.load(Ordering::Acquire) {
                    return;
                }
                if !calm || !raised.load(Ordering::Acquire) {
                    let (target, raised) = (Arc::clone(&stopper), Arc::clone(&raised));
                    let what = what.clone();
                    let sent = stopper.signals.send(Box::new(move |vm| {
                        // A signal that arrives late must not hit the next request.
                        let late = target.running.load(Ordering::Acquire) != request;
                        if late || (raised.swap(true, Ordering::AcqRel) && calm) {
                            return Ok(());
                        }
                        Err(exception(what.as_ref(), vm))
                    }));
                    if sent.is_err() {
                        return;
                    }
                }
                std::thread::sleep(Duration::from_millis(if calm { 20 } else { 1 }));
            }
        };
        // Without a thread nothing can be stopped; the caller has stopped waiting all the same.
        let _ = std::thread::Builder::new()
            .name("dag-interpreter-stop".to_owned())
            .spawn(raise);
    }
}

/// The exception to raise in the code that runs.
fn exception(what: Option<&(Interruption, String)>, vm: &VirtualMachine) -> PyBaseExceptionRef {
    let made = what.map(|(interruption, text)| {
        vm.import("updraft_runtime", 0)?
            .get_attr("interruption", vm)?
            .call((interruption.maker(), text.as_str()), vm)?
            .downcast::<PyBaseException>()
            .map_err(|_| vm.new_type_error("an interruption is no exception"))
    });
    match made {
        Some(Ok(exception) | Err(exception)) => exception,
        None => vm.new_exception_msg(
            vm.ctx.exceptions.keyboard_interrupt.to_owned(),
            "stopped by the worker".into(),
        ),
    }
}

/// Name of the interpreter's thread.
const THREAD: &str = "dag-interpreter";

/// Keeps panics of the embedded Python off the standard error, which is part of the task log: code that is stopped at
/// the wrong moment can make it panic. They are caught, and told as errors.
fn hush_panics() {
    static HUSHED: Once = Once::new();
    HUSHED.call_once(|| {
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // The threads that Dag code starts have no name.
            let python =
                |location: &std::panic::Location<'_>| location.file().contains("rustpython");
            if std::thread::current().name() != Some(THREAD)
                && !panic.location().is_some_and(python)
            {
                tell(panic);
            }
        }));
    });
}

/// The interpreter's thread.
fn run(
    world: Arc<World>,
    started: &std_mpsc::SyncSender<Result<Arc<Stopper>, String>>,
    mut inbox: mpsc::UnboundedReceiver<Request>,
) {
    let (vm, stopper) = match catch_unwind(AssertUnwindSafe(|| Vm::start(world))) {
        Ok(Ok((vm, signals))) => {
            // Running from the start, so that a timeout can't fall between the start and the first request.
            let stopper = Arc::new(Stopper {
                signals,
                running: AtomicU64::new(1),
            });
            if started.send(Ok(Arc::clone(&stopper))).is_err() {
                return;
            }
            (vm, stopper)
        }
        Ok(Err(error)) => {
            let _ = started.send(Err(error.to_string()));
            return;
        }
        Err(panic) => {
            let _ = started.send(Err(format!(
                "the Dag interpreter did not start: {}",
                panic_text(&*panic)
            )));
            return;
        }
    };
    while let Some(Request {
        number,
        function,
        arguments,
        answer,
    }) = inbox.blocking_recv()
    {
        // In this order, so that whoever stops waiting either keeps it from running or finds it running.
        stopper.running.store(number, Ordering::SeqCst);
        if answer.is_closed() {
            stopper.running.store(0, Ordering::Release);
            continue;
        }
        let result = catch_unwind(AssertUnwindSafe(|| {
            let answer = vm.call("updraft_runtime", function, arguments)?;
            if function == "load" {
                vm.loading_is_over()?;
            }
            Ok(answer)
        }));
        stopper.running.store(0, Ordering::Release);
        match result {
            // The caller may have stopped waiting.
            Ok(result) => drop(answer.send(result)),
            Err(panic) => {
                let _ = answer.send(Err(format!(
                    "the Dag interpreter panicked: {}",
                    panic_text(&*panic)
                )));
                // Its state can't be trusted any more, not even for tidying up.
                return;
            }
        }
    }
    if catch_unwind(AssertUnwindSafe(|| vm.end())).is_err() {
        tracing::warn!(
            "the Dag interpreter panicked while it was ending; its memory may stay in use"
        );
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}

#[cfg(test)]
mod tests;
