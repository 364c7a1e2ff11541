//! Tells people and programs: what a message says, where it waits until it is told, and one file for each kind of
//! receiver.
//!
//! A message is put into the [`outbox`] in the transaction that stores the alert state it speaks of; the [`courier`]
//! carries it to each channel of its receiver, in order, until the channel has it or refuses it for good.
//!
//! - Nothing here decides *whether* to tell: routes, grouping and repeats are the core's.
//! - No process-wide state: no TLS default, no logger, no runtime of the embedder's.
//! - No secret in any error, log line or status.

pub mod clock;
pub mod courier;
pub mod heartbeat;
pub mod http;
pub mod mail;
pub mod message;
pub mod outbox;
pub mod payload;
pub mod receiver;
pub mod secret;
pub mod tls;
pub mod verdict;

pub use courier::{ChannelStatus, Courier, CourierHandle};
pub use message::{Alert, Message, Reason, Status, idempotency_key};
pub use outbox::db::Db;
pub use receiver::{BuildContext, ReceiverConfig, Receivers};
