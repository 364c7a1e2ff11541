//! Strict reading of YAML: unknown keys are refused, and all errors of a file are told at once, each with its
//! place and, where one can be given, a hint.
//!
//! ```
//! use watchfire_door::{Errors, read};
//!
//! let mut errors = Errors::default();
//! let node = read("demo.yaml", "interval: 5 minuets\nintervall: 3s\n", &mut errors).unwrap();
//! let mut map = node.map(&mut errors).unwrap();
//! let interval = map.require("interval", &mut errors).and_then(|node| node.duration(&mut errors));
//! map.finish(&mut errors);
//! assert_eq!(interval, None);
//! assert_eq!(errors.to_string(), "\
//! demo.yaml:1:11: \"5 minuets\" is no duration; expected a number with ms, s, m, h, d or w, such as 1h30m
//!   hint: write `5m`
//! demo.yaml:2:1: unknown key `intervall`; expected one of interval
//!   hint: did you mean `interval`?");
//! ```

mod duration;
mod errors;
mod map;
mod node;
mod parse;

pub use duration::{format_duration, parse_duration};
pub use errors::{Errors, Place, Problem, nearest};
pub use map::Map;
pub use node::Node;
pub use parse::{DEPTH_MAX, FILE_BYTES_MAX, read};
