//! The contract's types on the host's side.

#![allow(missing_docs, reason = "generated")]

wasmtime::component::bindgen!({ path: "../../sdk/wit", world: "watchfire-rule" });

pub use watchfire::rule::types;
