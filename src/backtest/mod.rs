//! What a replay would have meant: alerts, noise, and how well they fit to what really happened.

mod again;
mod diff;
mod episodes;
mod incidents;
mod judge;
mod range;
mod report;
mod show;
mod sight;

pub use again::{Version, again, is_capture};
pub use diff::{Difference, differences};
pub use episodes::{Episode, Episodes};
pub use incidents::{Incident, read as read_incidents};
pub use judge::{Score, score};
pub use range::Range;
pub use report::{Report, report};
pub use show::{show_difference, show_report, show_score};
pub use sight::{Sight, sights};
