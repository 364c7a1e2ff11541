//! The examples do what they say.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::Command;

#[test]
fn an_agent_that_embeds_the_engine_hears_of_its_fan() {
    let mut cargo = Command::new(env!("CARGO"));
    let cargo =
        cargo.args(["build", "--quiet", "--workspace", "--example", "embed"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    assert!(cargo.status().unwrap().success());
    let folder = Path::new(env!("CARGO_BIN_EXE_watchfire")).parent().unwrap();
    let output = Command::new(folder.join("examples/embed")).output().unwrap();
    let expected = [
        " 40 s  pending  fan of GPU 0 on node-7 stands still",
        " 70 s  firing   fan of GPU 0 on node-7 stands still: gpu_fan_ratio is 0, gpu_temperature_celsius is 75",
        "1 alert(s) firing at the end",
    ];
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn the_embedding_example_is_short() {
    let text = include_str!("../examples/embed/main.rs");
    assert!(text.lines().count() <= 60, "an agent must fit into 60 lines");
}
