//! What the script says.

use std::path::PathBuf;
use std::time::SystemTime;

/// What a call is answered with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// This return code.
    Ret(u32),
    /// This value, in the function's own unit.
    Value(f64),
    /// After so many milliseconds, the usual answer.
    Hang(u64),
}

#[derive(Clone, Debug)]
struct Rule {
    function: String,
    gpu: Option<u32>,
    field: Option<u32>,
    polls: (u64, u64),
    action: Action,
}

/// The script in force.
#[derive(Debug, Default)]
pub struct Script {
    path: Option<PathBuf>,
    read_at: Option<(SystemTime, u64)>,
    rules: Vec<Rule>,
    /// How many GPUs there are.
    pub gpus: u32,
    /// Polls begun.
    pub poll: u64,
}

impl Script {
    /// The script beside the library.
    pub fn beside(library: Option<PathBuf>) -> Self {
        let path = library.map(|library| {
            let mut path = library.into_os_string();
            path.push(".script");
            PathBuf::from(path)
        });
        Script { path, gpus: 8, ..Script::default() }
    }

    /// Reads the file again where it changed.
    pub fn refresh(&mut self) {
        let Some(path) = &self.path else { return };
        let stamp = std::fs::metadata(path).and_then(|meta| Ok((meta.modified()?, meta.len()))).ok();
        if stamp.is_none() || stamp == self.read_at {
            return;
        }
        if let Ok(text) = std::fs::read_to_string(path) {
            (self.rules, self.gpus) = parse(&text);
            self.read_at = stamp;
        }
    }

    /// What a call is answered with; none = as usual.
    pub fn action(&self, function: &str, gpu: Option<u32>, field: Option<u32>) -> Option<Action> {
        let fits = |rule: &&Rule| {
            (rule.function == "*" || rule.function == function)
                && (rule.gpu.is_none() || rule.gpu == gpu)
                && (rule.field.is_none() || rule.field == field)
                && (rule.polls.0..=rule.polls.1).contains(&self.poll)
        };
        self.rules.iter().find(fits).map(|rule| rule.action)
    }
}

fn parse(text: &str) -> (Vec<Rule>, u32) {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (mut rules, mut gpus) = (Vec::new(), 8);
    for line in lines {
        match line.strip_prefix("gpus ") {
            Some(count) => gpus = count.trim().parse().unwrap_or(gpus),
            None => rules.extend(rule(line)),
        }
    }
    (rules, gpus)
}

fn rule(line: &str) -> Option<Rule> {
    let (call, action) = line.split_once("->")?;
    let mut words = call.split_whitespace();
    let (function, gpu) = (words.next()?.to_owned(), words.next()?);
    let mut rule = Rule {
        function,
        gpu: gpu.parse().ok(),
        field: None,
        polls: (0, u64::MAX),
        action: parse_action(action.trim())?,
    };
    for word in words {
        match word.split_once('=')? {
            ("field", value) => rule.field = value.parse().ok(),
            ("poll", range) => rule.polls = parse_range(range)?,
            _ => return None,
        }
    }
    Some(rule)
}

fn parse_range(text: &str) -> Option<(u64, u64)> {
    match text.split_once("..") {
        Some((from, "")) => Some((from.parse().ok()?, u64::MAX)),
        Some((from, to)) => Some((from.parse().ok()?, to.parse().ok()?)),
        None => text.parse().ok().map(|one| (one, one)),
    }
}

fn parse_action(text: &str) -> Option<Action> {
    match text.split_once('=')? {
        ("ret", code) => code.parse().ok().map(Action::Ret),
        ("value", value) => value.parse().ok().map(Action::Value),
        ("hang", ms) => ms.parse().ok().map(Action::Hang),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_fits_answers() {
        let (rules, gpus) = parse(
            "gpus 2\n# no\nTemperature 1 poll=3..4 -> value=91\n* 1 -> ret=15\nFieldValues * field=82 -> ret=3\n",
        );
        let mut script = Script { rules, gpus, poll: 3, ..Script::default() };
        assert_eq!(script.gpus, 2);
        assert_eq!(script.action("Temperature", Some(1), None), Some(Action::Value(91.0)));
        assert_eq!(script.action("Temperature", Some(0), None), None);
        assert_eq!(script.action("FieldValues", Some(0), Some(82)), Some(Action::Ret(3)));
        script.poll = 5;
        assert_eq!(script.action("Temperature", Some(1), None), Some(Action::Ret(15)));
    }
}
