//! A capture, asked again.

use std::path::Path;

use serde_json::{Value, json};
use watchfire_engine::capture::{Answer, Call, Capture, CapturedHit, program_of};
use watchfire_engine::clock::rfc3339;
use watchfire_engine::sandbox::{Sandbox, SandboxConfig};
use watchfire_engine::{Given, Program, Time, templates_at};

use crate::author::measure;
use crate::exit::{Exit, Failure};

/// The most rows that are shown for one call; all are counted.
const ROWS_SHOWN_MAX: usize = 8;

/// What is asked again.
#[derive(Debug)]
pub enum Version<'a> {
    /// A module, with the settings of the capture.
    Module(&'a Path),
    /// The rule of the same name of a template or a folder of templates.
    Templates(&'a Path),
}

/// Whether a file is a capture, by its name.
pub fn is_capture(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "capture")
}

/// Shows a capture, and where a version is given what it answers to the same and where that differs.
pub fn again(file: &Path, version: Option<Version<'_>>, is_json: bool, fail_on_diff: bool) -> Result<Exit, Failure> {
    let said = |why: String| Failure::wrong(format!("{}: {why}", file.display()));
    let bytes = watchfire_engine::read_file(file).map_err(|why| said(why.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| said("it is no UTF-8 text".to_owned()))?;
    let capture = Capture::read(&text).map_err(said)?;
    let answers = match version {
        None => capture.calls.iter().map(|call| (call.answer.clone(), call.steps)).collect(),
        Some(version) => {
            let mut program = program(&capture, &version).map_err(Failure::wrong)?;
            capture.ask(&mut *program).map_err(said)?
        }
    };
    let differing = capture.calls.iter().zip(&answers).filter(|(call, (answer, _))| call.answer != *answer).count();
    if !is_json {
        println!("{} ({}), settings {}", capture.rule, capture.module, capture.settings);
    }
    for (call, (answer, steps)) in capture.calls.iter().zip(&answers) {
        match is_json {
            true => println!("{}", line(call, answer, *steps)),
            false => print!("{}", shown(call, answer, *steps)),
        }
    }
    if !is_json {
        println!("{} calls, {differing} answered otherwise", answers.len());
    }
    Ok(if fail_on_diff && differing > 0 { Exit::Wrong } else { Exit::Fine })
}

fn program(capture: &Capture, version: &Version<'_>) -> Result<Box<dyn Program>, String> {
    match version {
        Version::Templates(path) => {
            let sources = templates_at(path).map_err(|why| format!("{} cannot be read: {why}", path.display()))?;
            program_of(&sources, &Given::new(), &capture.rule)
        }
        Version::Module(path) => {
            let bytes = watchfire_engine::read_file(path).map_err(|why| format!("{}: {why}", path.display()))?;
            let sandbox = Sandbox::new(SandboxConfig::default()).map_err(|error| error.to_string())?;
            let module = measure::load(&sandbox, path, &bytes)?;
            module.start(&capture.settings).map_err(|error| format!("with the settings of the capture: {error}"))
        }
    }
}

fn line(call: &Call, answer: &Answer, steps: Option<u64>) -> Value {
    let differs = call.answer != *answer;
    json!({
        "time": rfc3339(Time::from_millis(call.now_ms)), "tick": call.tick, "rows": call.rows, "differs": differs,
        "steps": steps, "steps_then": call.steps, "answer": answer, "answer_then": differs.then_some(&call.answer),
    })
}

fn shown(call: &Call, answer: &Answer, steps: Option<u64>) -> String {
    let steps = steps.map(|steps| format!(", {steps} steps")).unwrap_or_default();
    let time = rfc3339(Time::from_millis(call.now_ms));
    let mut out = format!("{time}  tick {}, {} rows{steps}: {}\n", call.tick, call.rows, words(answer));
    if call.answer == *answer {
        return out;
    }
    out += &format!("  then: {}\n", words(&call.answer));
    let rows =
        (0..u32::try_from(call.rows).unwrap_or(u32::MAX)).map(|row| (row, of(&call.answer, row), of(answer, row)));
    let changed: Vec<_> = rows.filter(|(_, then, now)| then != now).collect();
    for (row, then, now) in changed.iter().take(ROWS_SHOWN_MAX) {
        out += &format!("  row {row}: {} -> {}\n", hit(*then), hit(*now));
    }
    if changed.len() > ROWS_SHOWN_MAX {
        out += &format!("  and {} rows more\n", changed.len() - ROWS_SHOWN_MAX);
    }
    if let (true, Answer::Outcome { .. }) = (changed.is_empty(), answer) {
        out += "  the hits are the same; state or derived values are not\n";
    }
    out
}

fn of(answer: &Answer, row: u32) -> Option<&CapturedHit> {
    answer.hits().iter().find(|hit| hit.row == row)
}

fn words(answer: &Answer) -> String {
    match answer {
        Answer::Failed(why) => format!("the rule {why}"),
        Answer::Outcome { hits, .. } => format!("{} hits", hits.len()),
    }
}

fn hit(hit: Option<&CapturedHit>) -> String {
    let Some(hit) = hit else { return "no hit".to_owned() };
    let word = |severity: &Option<String>| severity.clone().unwrap_or_else(|| "none".to_owned());
    let value = hit.value.0.first().copied().unwrap_or(f64::NAN);
    let note = hit.note.as_ref().map(|note| format!(" {note:?}")).unwrap_or_default();
    format!("raise {}, hold {}, value {value}{note}", word(&hit.raise), word(&hit.hold))
}
