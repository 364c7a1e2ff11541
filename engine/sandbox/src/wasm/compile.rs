//! Checking and compiling a module on a thread of its own: neither the time nor the patience that a module may take is
//! bounded otherwise, and a panic of the compiler is that module's fault alone.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};

use wasmtime::component::Component;

use super::{Host, load};
use crate::{Limits, LoadError};

/// Compilations that may still run after they were given up: nothing can stop them.
const LEFT_BEHIND_MAX: usize = 2;
/// Stack of the thread, bytes.
const STACK_BYTES: usize = 8 << 20;

/// The compilations of one sandbox.
#[derive(Default)]
pub struct Compilers {
    /// Those that were given up and still run.
    left_behind: Arc<AtomicUsize>,
}

#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Running,
    Ended,
    GivenUp,
}

/// One compilation, as both of its sides know it.
#[derive(Clone)]
struct Job {
    fate: Arc<Mutex<Fate>>,
    left_behind: Arc<AtomicUsize>,
}

impl Job {
    fn give_up(&self) {
        let mut fate = self.fate.lock().unwrap_or_else(PoisonError::into_inner);
        if *fate == Fate::Running {
            *fate = Fate::GivenUp;
            self.left_behind.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Ends a job however its thread ends.
struct Ending(Job);

impl Drop for Ending {
    fn drop(&mut self) {
        let mut fate = self.0.fate.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *fate, Fate::Ended) == Fate::GivenUp {
            self.0.left_behind.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Checks and compiles a module.
pub fn compile(host: &Arc<Host>, bytes: Vec<u8>, limits: &Limits) -> Result<Component, LoadError> {
    let left_behind = host.compilers.left_behind.clone();
    let left = left_behind.load(Ordering::Relaxed);
    if left >= LEFT_BEHIND_MAX {
        return Err(LoadError::CompilersBusy(left));
    }
    let job = Job { fate: Arc::new(Mutex::new(Fate::Running)), left_behind };
    let (done, result) = channel();
    let (owned, bounds, ending) = (host.clone(), limits.clone(), Ending(job.clone()));
    let work = move || {
        let _ending = ending;
        // Nobody listens any more where the time limit was hit.
        let _ = done.send(checked(&owned, &bytes, &bounds));
    };
    let thread = std::thread::Builder::new().name("watchfire-compile".into()).stack_size(STACK_BYTES);
    thread.spawn(work).map_err(|error| LoadError::Compile(error.to_string()))?;
    match result.recv_timeout(limits.compile) {
        Ok(compiled) => compiled,
        Err(RecvTimeoutError::Disconnected) => Err(LoadError::Compile("the compiler gave up on it".to_owned())),
        Err(RecvTimeoutError::Timeout) => {
            job.give_up();
            Err(LoadError::CompileTime(limits.compile))
        }
    }
}

fn checked(host: &Host, bytes: &[u8], limits: &Limits) -> Result<Component, LoadError> {
    let bytes = load::check(bytes, limits)?;
    if let Some(component) = host.cache.as_ref().and_then(|cache| cache.get(&host.engine, &bytes)) {
        return Ok(component);
    }
    let component =
        Component::from_binary(&host.engine, &bytes).map_err(|error| LoadError::Compile(format!("{error:#}")))?;
    if let Some(cache) = &host.cache {
        cache.put(&component, &bytes);
    }
    Ok(component)
}
