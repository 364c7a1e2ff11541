//! What time it is for the engine.

use watchfire_engine::Time;

/// What time it is for the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The system's.
    System,
    /// That of a recording, which stands still between its moments.
    Recorded(Time),
}

impl Clock {
    /// The moment.
    pub fn now(self) -> Time {
        match self {
            Clock::System => crate::commands::now(),
            Clock::Recorded(at) => at,
        }
    }
}
