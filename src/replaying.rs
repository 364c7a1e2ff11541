//! Recorded samples through the engine, on virtual time.

use std::iter::Peekable;
use std::time::Duration;

use watchfire_collector::input::Input;
use watchfire_collector::recording::Moment;
use watchfire_engine::{Engine, Output, Time};

use crate::exit::Failure;

/// Feeds one moment: first the deadlines before it, each at its own time, then its samples, then its own deadlines.
pub fn feed(engine: &mut Engine, moment: Moment, each: &mut (impl FnMut(Output) + ?Sized)) {
    pass(engine, moment.time, each);
    for event in moment.events {
        engine.happened(moment.time, event);
    }
    engine.observe(moment.time, &moment.observations);
}

/// The longest gap between two moments in which each deadline passes at its own time; by then all data is stale and
/// every alert has become what it will be. What is beyond is jumped over.
pub const GAP_MAX: Duration = Duration::from_secs(24 * 3600);

/// Lets deadlines before a moment pass, each at its own time.
pub fn pass(engine: &mut Engine, before: Time, each: &mut (impl FnMut(Output) + ?Sized)) {
    let Some(first) = engine.next_deadline() else { return };
    let end = before.min(first + GAP_MAX);
    while let Some(due) = engine.next_deadline().filter(|due| *due < end) {
        engine.advance(due).into_iter().for_each(&mut *each);
    }
}

/// Runs the deadlines of the last moment itself.
pub fn finish(engine: &mut Engine, last: Time, each: &mut (impl FnMut(Output) + ?Sized)) {
    pass(engine, last, each);
    engine.advance(last).into_iter().for_each(each);
}

/// The earliest moment of all inputs.
///
/// # Errors
/// An input cannot be read any further.
pub fn next(inputs: &mut [Peekable<Input>]) -> Result<Option<Moment>, Failure> {
    let time = |input: &mut Peekable<Input>| match input.peek() {
        Some(Ok(moment)) => Some(moment.time),
        Some(Err(_)) => Some(Time::EPOCH),
        None => None,
    };
    let first = inputs.iter_mut().filter_map(|input| Some((time(input)?, input))).min_by_key(|(time, _)| *time);
    first.and_then(|(_, input)| input.next()).transpose().map_err(Failure::wrong)
}
