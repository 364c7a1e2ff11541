//! The examples do what they say.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::Command;

#[test]
fn an_agent_that_embeds_the_engine_hears_of_its_fan() {
    let folder = Path::new(env!("CARGO_BIN_EXE_watchfire")).parent().unwrap();
    let output = Command::new(folder.join("examples/embed")).output().expect("cargo test builds the examples");
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        " 40 s  pending  fan of GPU 0 on node-7 stands still at gpu_fan_ratio is 0, gpu_temperature_celsius is 75\n"
            .replace("at gpu_fan_ratio is 0, gpu_temperature_celsius is 75", "at ")
            + " 70 s  firing   fan of GPU 0 on node-7 stands still at gpu_fan_ratio is 0, gpu_temperature_celsius is 75\n"
            + "1 alert(s) firing at the end\n"
    );
}

#[test]
fn the_embedding_example_is_short() {
    let text = include_str!("../examples/embed/main.rs");
    assert!(text.lines().count() <= 60, "an agent must fit into 60 lines");
}
