//! Recorded samples through the engine, on virtual time.

use watchfire_collector::recording::Moment;
use watchfire_engine::{Engine, Output, Time};

/// Feeds one moment: first the deadlines before it, each at its own time, then its samples, then its own deadlines.
pub fn feed(engine: &mut Engine, moment: Moment, each: &mut impl FnMut(Output)) {
    pass(engine, moment.time, each);
    for event in moment.events {
        engine.happened(moment.time, event);
    }
    engine.observe(moment.time, &moment.observations);
}

/// Lets deadlines before a moment pass, each at its own time.
pub fn pass(engine: &mut Engine, before: Time, each: &mut impl FnMut(Output)) {
    while let Some(due) = engine.next_deadline().filter(|due| *due < before) {
        engine.advance(due).into_iter().for_each(&mut *each);
    }
}

/// Runs the deadlines of the last moment itself.
pub fn finish(engine: &mut Engine, last: Time, each: &mut impl FnMut(Output)) {
    pass(engine, last, each);
    engine.advance(last).into_iter().for_each(each);
}
