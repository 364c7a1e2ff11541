//! Email: what it says, and how it is handed to a server.

pub mod account;
pub mod fault;
pub mod render;
pub mod smtp;
