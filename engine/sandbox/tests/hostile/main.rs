//! Modules and scripts that mean harm: each ends in an error with a name, within its limits, and the next rule does
//! not notice.
#![allow(clippy::unwrap_used, reason = "tests")]

mod answers;
mod bombs;
mod calls;
mod files;
mod limits;
mod scripts;
mod world;
