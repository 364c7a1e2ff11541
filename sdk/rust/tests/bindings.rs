//! The shipped bindings are what wit-bindgen makes of the contract. `UPDATE_EXPECT=1` writes them anew.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use wit_bindgen_core::wit_parser::Resolve;
use wit_bindgen_core::{Files, WorldGenerator};

fn generated() -> String {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit")).unwrap();
    let world = resolve.select_world(&[package], Some("migrating-rule")).unwrap();
    let options = wit_bindgen_rust::Opts {
        pub_export_macro: true,
        default_bindings_module: Some("watchfire_sdk::bindings".into()),
        generate_all: true,
        format: true,
        ..Default::default()
    };
    let mut files = Files::default();
    options.build().generate(&mut resolve, world, &mut files).unwrap();
    let (_, bytes) = files.iter().find(|(name, _)| name.ends_with(".rs")).unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_shipped_bindings_are_those_of_the_contract() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bindings.rs");
    let expected = generated();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&file, &expected).unwrap();
    }
    let shipped = std::fs::read_to_string(&file).unwrap();
    assert!(shipped == expected, "sdk/wit changed: run `UPDATE_EXPECT=1 cargo test -p watchfire-sdk --test bindings`");
}
