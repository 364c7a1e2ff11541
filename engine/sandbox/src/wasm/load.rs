//! What is checked of a module before it is run.

use wasmparser::{Encoding, Parser, Payload};
use wasmtime::Engine;
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

use super::CONTRACT;
use crate::outline::check_magic;
use crate::{Limits, LoadError};

const RULE_INTERFACE: &str = "watchfire:rule/rule@0.1.0";
const IMPORTS: [&str; 2] = ["watchfire:rule/host@0.1.0", "watchfire:rule/types@0.1.0"];

/// Components and modules within one file.
const PARTS_MAX: usize = 64;
/// Components within components.
const DEPTH_MAX: usize = 8;
/// Locals of one function: code of a C compiler without optimisation has hundreds.
const LOCALS_MAX: usize = 10_000;
/// Results of one function or block: each branch copies them, so that a table of branches multiplies them.
const RESULTS_MAX: usize = 16;
/// Parameters of one function or block.
const PARAMETERS_MAX: usize = 256;

/// The bytes of a component: those given, or a core module made into one.
pub fn check(bytes: &[u8], limits: &Limits) -> Result<Vec<u8>, LoadError> {
    at_most("module_bytes", bytes.len(), limits.module_bytes)?;
    check_not_compiled(bytes)?;
    match encoding(bytes, limits)? {
        Encoding::Component => Ok(bytes.to_vec()),
        Encoding::Module => componentize(bytes),
    }
}

/// Compiled code would be run as it is: it is taken from the cache alone.
pub fn check_not_compiled(bytes: &[u8]) -> Result<(), LoadError> {
    if Engine::detect_precompiled(bytes).is_some() {
        return Err(LoadError::NotWasm("it is compiled code already, which is never loaded from outside".to_owned()));
    }
    Ok(())
}

fn at_most(name: &'static str, found: usize, limit: usize) -> Result<(), LoadError> {
    if found > limit { Err(LoadError::TooLarge { found, limit, name }) } else { Ok(()) }
}

fn not_wasm(error: wasmparser::BinaryReaderError) -> LoadError {
    LoadError::NotWasm(error.to_string())
}

/// Reads the whole file once, before a compiler sees it: what would take a compiler more than its size is refused.
fn encoding(bytes: &[u8], limits: &Limits) -> Result<Encoding, LoadError> {
    check_magic(bytes).map_err(LoadError::NotWasm)?;
    let (mut encoding, mut parts, mut depth) = (None, 0, 0_usize);
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(not_wasm)? {
            Payload::Version { encoding: found, .. } => {
                encoding.get_or_insert(found);
                (parts, depth) = (parts + 1, depth + 1);
                few(parts, PARTS_MAX, "components and modules in one file")?;
                few(depth, DEPTH_MAX, "components within components")?;
            }
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::CodeSectionStart { count, .. } => at_most("functions", count as usize, limits.functions)?,
            Payload::CodeSectionEntry(body) => check_body(&body, limits)?,
            Payload::TypeSection(types) => check_types(types)?,
            _ => {}
        }
    }
    encoding.ok_or_else(|| LoadError::NotWasm("the file is empty".to_owned()))
}

fn few(found: usize, limit: usize, what: &str) -> Result<(), LoadError> {
    if found > limit { Err(LoadError::Bomb(format!("more than {limit} {what}"))) } else { Ok(()) }
}

fn check_body(body: &wasmparser::FunctionBody<'_>, limits: &Limits) -> Result<(), LoadError> {
    at_most("function_bytes", body.range().len(), limits.function_bytes)?;
    let locals = body.get_locals_reader().map_err(not_wasm)?;
    let mut count = 0;
    for local in locals {
        count += u64::from(local.map_err(not_wasm)?.0);
        few(usize::try_from(count).unwrap_or(usize::MAX), LOCALS_MAX, "locals in one function")?;
    }
    Ok(())
}

fn check_types(types: wasmparser::TypeSectionReader<'_>) -> Result<(), LoadError> {
    for group in types {
        for kind in group.map_err(not_wasm)?.types() {
            let wasmparser::CompositeInnerType::Func(function) = &kind.composite_type.inner else { continue };
            few(function.results().len(), RESULTS_MAX, "results of one function")?;
            few(function.params().len(), PARAMETERS_MAX, "parameters of one function")?;
        }
    }
    Ok(())
}

/// Makes a component of a core module that carries its component type, as `watchfire-sdk` builds it.
///
/// # Errors
/// Why it cannot be one.
pub fn componentize(bytes: &[u8]) -> Result<Vec<u8>, LoadError> {
    check_core_imports(bytes)?;
    let encoder = wit_component::ComponentEncoder::default().validate(true).module(bytes);
    let encoded = encoder.and_then(|mut encoder| encoder.encode());
    encoded.map_err(|error| {
        let words = format!("{error:#}");
        if words.contains("component-type") || !has_contract(bytes) {
            let found = "carries no component type: it was not built with watchfire-sdk".to_owned();
            return LoadError::Contract { found, offered: CONTRACT };
        }
        LoadError::Compile(words)
    })
}

fn has_contract(bytes: &[u8]) -> bool {
    let sections = Parser::new(0).parse_all(bytes).filter_map(Result::ok);
    let mut customs = sections.filter_map(|payload| match payload {
        Payload::CustomSection(section) => Some(section.name().to_owned()),
        _ => None,
    });
    customs.any(|name| name.starts_with("component-type"))
}

fn check_core_imports(bytes: &[u8]) -> Result<(), LoadError> {
    for payload in Parser::new(0).parse_all(bytes).filter_map(Result::ok) {
        let Payload::ImportSection(imports) = payload else { continue };
        for import in imports.into_imports().filter_map(Result::ok) {
            let known = import.module.starts_with("watchfire:rule/") || import.module == "$root";
            if !known {
                return Err(refused(&format!("{}.{}", import.module, import.name)));
            }
        }
    }
    Ok(())
}

fn refused(import: &str) -> LoadError {
    let hint = if import.starts_with("wasi") {
        "build for wasm32-unknown-unknown, which needs no WASI, in place of wasm32-wasip1 or wasm32-wasip2"
    } else {
        "the one thing that a rule may import is watchfire:rule/host"
    };
    LoadError::Import { import: import.to_owned(), hint }
}

/// A component may import what the contract offers, and instances without functions.
pub fn check_imports(component: &Component, engine: &Engine) -> Result<(), LoadError> {
    let shape = component.component_type();
    for (name, item) in shape.imports(engine) {
        let only_types = match &item.ty {
            ComponentItem::ComponentInstance(instance) => {
                instance.exports(engine).all(|(_, item)| matches!(item.ty, ComponentItem::Type(_)))
            }
            _ => false,
        };
        if !IMPORTS.contains(&name) && !only_types {
            return Err(refused(name));
        }
    }
    Ok(())
}

/// A component must export the contract's interface, in this version.
pub fn check_exports(component: &Component, engine: &Engine) -> Result<(), LoadError> {
    let shape = component.component_type();
    let names: Vec<String> = shape.exports(engine).map(|(name, _)| name.to_owned()).collect();
    if names.iter().any(|name| name == RULE_INTERFACE) {
        return Ok(());
    }
    let found = match names.iter().find(|name| name.starts_with("watchfire:rule/rule")) {
        Some(other) => format!("was built for {}", other.replace("/rule@", "@")),
        None => "exports no rule".to_owned(),
    };
    Err(LoadError::Contract { found, offered: CONTRACT })
}
