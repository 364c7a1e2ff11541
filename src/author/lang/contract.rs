//! The contract, for toolchains that do not bring it themselves.

use std::path::Path;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The contract's text.
const WIT: &str = include_str!("../../../sdk/wit/rule.wit");
/// The world that every rule is written for.
pub const WORLD: &str = "watchfire-rule";

/// Puts the contract into a core module, so that it can become a component.
///
/// # Errors
/// Where it cannot be put there.
pub fn embed(module: &mut Vec<u8>) -> Result<(), String> {
    let mut put = || {
        let mut resolve = Resolve::default();
        let package = resolve.push_str("rule.wit", WIT)?;
        let world = resolve.select_world(&[package], Some(WORLD))?;
        embed_component_metadata(module, &resolve, world, StringEncoding::UTF8)
    };
    put().map_err(|error| format!("the contract: {error:#}"))
}

/// Makes a component of a module with the contract in it, whose other imports an adapter satisfies.
///
/// # Errors
/// Where they do not fit together.
pub fn adapt(module: &[u8], name: &str, adapter: &[u8]) -> Result<Vec<u8>, String> {
    let make = || ComponentEncoder::default().validate(true).module(module)?.adapter(name, adapter)?.encode();
    make().map_err(|error| format!("{error:#}"))
}

/// Writes the contract's text into a folder, for tools that read it from there.
///
/// # Errors
/// Where it cannot be written.
pub fn write(folder: &Path) -> Result<(), String> {
    let file = folder.join("rule.wit");
    std::fs::write(&file, WIT).map_err(|error| format!("{}: {error}", file.display()))
}
