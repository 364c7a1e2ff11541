//! What a bare Debian machine with Rust lacks. Each step says what it installs; what is there is left alone.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::shell::{ask, command, has, root, say, within};

const TARGET: &str = "wasm32-unknown-unknown";
/// `rustup target add` may hang where downloads are blocked.
const RUSTUP_WAIT: Duration = Duration::from_secs(120);
const APT_WAIT: Duration = Duration::from_secs(900);

/// A C compiler, for SQLite and for the TLS library.
pub fn compiler() -> Result<(), String> {
    if has("cc") {
        return Ok(());
    }
    if apt(&["build-essential"]) && has("cc") {
        return Ok(());
    }
    Err("there is no C compiler, and `apt-get install build-essential` did not bring one".to_owned())
}

/// The WebAssembly target: there already, by rustup, or Debian's compiler with its library's source.
pub fn wasm_target() -> Result<(), String> {
    if has_target() || has_debian_source() {
        return Ok(());
    }
    if has("rustup") {
        say(&format!("installing the Rust target {TARGET} by rustup"));
        if within(RUSTUP_WAIT, &mut command("rustup", &["target", "add", TARGET])) && has_target() {
            return Ok(());
        }
    }
    if apt(&["rustc-web", "cargo-web", "rust-web-src", "lld-22"]) && has_debian_source() {
        return Ok(());
    }
    Err(format!(
        "the Rust target {TARGET} is missing: neither `rustup target add {TARGET}` nor Debian's packages rustc-web, cargo-web, rust-web-src and lld-22 brought it"
    ))
}

fn has_target() -> bool {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let folder = ask(&mut command(&rustc, &["--print", "target-libdir", "--target", TARGET]));
    folder.is_some_and(|folder| Path::new(&folder).exists())
}

fn has_debian_source() -> bool {
    let sysroot = ask(&mut command("/usr/bin/rustc", &["--print", "sysroot"]));
    sysroot.is_some_and(|sysroot| Path::new(&sysroot).join("lib/rustlib/src/rust/library/std").exists())
}

/// Real servers that the tests talk to. Without one its tests say that they skip.
pub fn peers() {
    if !has("prometheus-alertmanager") && !apt(&["prometheus-alertmanager"]) {
        say("no prometheus-alertmanager: the tests against a real Alertmanager will skip");
    }
    if !has("promtool") && !apt(&["prometheus"]) {
        say("no prometheus: the tests against a real Prometheus will skip");
    }
    if !has_mail_server() && !install_mail_server() {
        say("no aiosmtpd: the tests against a real SMTP server will skip");
    }
}

/// The interpreter with aiosmtpd.
pub fn mail_server() -> PathBuf {
    root().join("target/test-venv/bin/python")
}

/// Asks for the package itself: an install that broke off leaves an interpreter without it.
fn has_mail_server() -> bool {
    ask(&mut command(&mail_server().display().to_string(), &["-c", "import aiosmtpd"])).is_some()
}

fn install_mail_server() -> bool {
    let folder = root().join("target/test-venv");
    let folder = folder.display().to_string();
    say("installing aiosmtpd from PyPI into target/test-venv");
    let venv = || within(APT_WAIT, &mut command("python3", &["-m", "venv", &folder]));
    let made = venv() || (apt(&["python3-venv"]) && venv());
    let pip = format!("{folder}/bin/pip");
    made && within(APT_WAIT, &mut command(&pip, &["install", "--quiet", "aiosmtpd"]))
}

/// Installs Debian packages, as root or by a sudo that asks nothing.
pub fn apt(packages: &[&str]) -> bool {
    if !has("apt-get") {
        return false;
    }
    let is_root = ask(&mut command("id", &["-u"])).as_deref() == Some("0");
    if !is_root && ask(&mut command("sudo", &["-n", "true"])).is_none() {
        say(&format!("not root, and sudo asks for a password: please run `apt-get install {}`", packages.join(" ")));
        return false;
    }
    say(&format!("installing Debian packages: {}", packages.join(", ")));
    let run = |args: &[&str]| {
        let mut all: Vec<&str> = if is_root { vec![] } else { vec!["sudo", "-n"] };
        all.extend(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        all.extend(args);
        within(APT_WAIT, &mut command(all[0], &all[1..]))
    };
    let mut install = vec!["install", "-y", "--no-install-recommends"];
    install.extend(packages);
    run(&install) || (run(&["update"]) && run(&install))
}
