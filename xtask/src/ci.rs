//! `cargo xtask ci`

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::shell::{self, cargo, say};
use crate::tools::Tool;

const DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2" };

/// Tests, then lints. The tests' own closing lines are printed again at the end.
pub fn run() -> Result<(), String> {
    let (closing, passed) = tests()?;
    sum_up(&closing);
    if !passed {
        return Err("tests failed".to_owned());
    }
    step("formatting", &mut cargo(&["fmt", "--all", "--check"]))?;
    step("lints", &mut cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]))?;
    let mut docs = cargo(&["doc", "--workspace", "--no-deps", "--quiet"]);
    step("documentation", docs.env("RUSTDOCFLAGS", "-D warnings"))?;
    dependencies()?;
    sum_up(&closing);
    Ok(())
}

fn sum_up(closing: &[String]) {
    closing.iter().for_each(|line| println!("{line}"));
    println!("{} passed, {} failed", total(closing, "passed"), total(closing, "failed"));
}

/// The sum of the numbers before a word in the closing lines.
fn total(closing: &[String], word: &str) -> u64 {
    let number = |line: &String| line.split(&format!(" {word};")).next()?.rsplit(' ').next()?.parse::<u64>().ok();
    closing.iter().filter_map(number).sum()
}

fn step(name: &str, command: &mut std::process::Command) -> Result<(), String> {
    say(name);
    shell::run(command).map_err(|why| format!("{name}: {why}"))
}

/// The README's test command. Its output passes through; its closing lines, and whether all passed.
fn tests() -> Result<(Vec<String>, bool), String> {
    say("tests");
    let mut child = cargo(&["xtask", "test"]).stdout(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
    let mut closing = Vec::new();
    for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines().map_while(Result::ok)) {
        println!("{line}");
        let _ = std::io::stdout().flush();
        if line.starts_with("test result:") {
            closing.push(line);
        }
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    Ok((closing, status.success()))
}

/// Licences, bans, sources and advisories. Without the network the database of advisories cannot be had; that is
/// said, and the rest is still checked.
fn dependencies() -> Result<(), String> {
    say("dependencies");
    step(
        "licences, bans and sources",
        &mut DENY.command(&["--all-features", "check", "bans", "licenses", "sources"])?,
    )?;
    let mut advisories = DENY.command(&["--all-features", "check", "advisories"])?;
    let output = advisories.output().map_err(|error| error.to_string())?;
    let words = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(()),
        false
            if words.contains("failed to fetch")
                || words.contains("failed to acquire")
                || words.contains("failed to load advisory database") =>
        {
            say("the database of advisories cannot be fetched here: advisories were NOT checked");
            Ok(())
        }
        false => Err(format!("advisories:\n{words}")),
    }
}

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn closing_lines_are_summed_up() {
        let line = |passed, failed| format!("test result: ok. {passed} passed; {failed} failed; 0 ignored; 0 measured");
        let closing = [line(3, 0), line(0, 0), line(12, 1)];
        assert_eq!((total(&closing, "passed"), total(&closing, "failed")), (15, 1));
    }
}
