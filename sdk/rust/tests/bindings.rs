//! The shipped bindings are what wit-bindgen makes of the contract. `UPDATE_EXPECT=1` writes them anew.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use wit_bindgen_core::wit_parser::Resolve;
use wit_bindgen_core::{Files, WorldGenerator};

/// The files that a generator makes, by name.
fn generated(mut generator: Box<dyn WorldGenerator>, world: &str) -> Vec<(String, String)> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit")).unwrap();
    let world = resolve.select_world(&[package], Some(world)).unwrap();
    let mut files = Files::default();
    generator.generate(&mut resolve, world, &mut files).unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    files.iter().map(|(name, bytes)| (name.to_owned(), text(bytes))).collect()
}

fn check(file: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, expected).unwrap();
    }
    let shipped = std::fs::read_to_string(&path).unwrap();
    assert!(
        shipped == expected,
        "{file}: sdk/wit changed: run `UPDATE_EXPECT=1 cargo test -p watchfire-sdk --test bindings`"
    );
}

#[test]
fn the_shipped_bindings_are_those_of_the_contract() {
    let options = wit_bindgen_rust::Opts {
        pub_export_macro: true,
        default_bindings_module: Some("watchfire_sdk::bindings".into()),
        generate_all: true,
        format: true,
        ..Default::default()
    };
    let files = generated(Box::new(options.build()), "migrating-rule");
    let (_, expected) = files.iter().find(|(name, _)| name.ends_with(".rs")).unwrap();
    check("src/bindings.rs", expected);
}

/// The contract itself is put into the module when it is built, so that no object file has to be shipped.
#[test]
fn the_shipped_c_bindings_are_those_of_the_contract() {
    let options = wit_bindgen_c::Opts { no_object_file: true, ..Default::default() };
    let files = generated(options.build(), "watchfire-rule");
    assert_eq!(files.len(), 2);
    files.iter().for_each(|(name, expected)| check(&format!("../c/bindings/{name}"), expected));
}
