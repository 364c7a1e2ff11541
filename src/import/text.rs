//! Texts of alerts: from Go's templates to MiniJinja's.

use super::{selector, severity};

/// The annotations that could be converted; of others a remark says why not.
pub(super) fn annotations(
    texts: &[(String, String)],
    metrics: &[String],
    remarks: &mut Vec<String>,
) -> Vec<(String, String)> {
    let mut converted = Vec::new();
    for (name, text) in texts {
        match convert(text.trim_end(), metrics) {
            Ok(text) if severity::is_name(name) => converted.push((name.clone(), text)),
            Ok(_) => remarks.push(format!("the annotation {name} is left out: its name is none a template has")),
            Err(why) => remarks.push(format!("the annotation {name} is left out: {why}")),
        }
    }
    converted
}

/// Converts one text.
fn convert(text: &str, metrics: &[String]) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        out += &literal(&rest[..start]);
        let inner = &rest[start + 2..];
        let end = inner.find("}}").ok_or("a `{{` has no `}}`")?;
        let action = &inner[..end];
        let (trims_before, trims_after) = (action.starts_with("- "), action.ends_with(" -"));
        let pipeline = action.strip_prefix('-').filter(|_| trims_before).unwrap_or(action);
        let pipeline = pipeline.strip_suffix('-').filter(|_| trims_after).unwrap_or(pipeline).trim();
        if !pipeline.starts_with("/*") {
            let (open, close) = (if trims_before { "{{-" } else { "{{" }, if trims_after { "-}}" } else { "}}" });
            out += &action_of(pipeline, metrics)?.written(open, close);
        }
        rest = &inner[end + 2..];
    }
    out += &literal(rest);
    Ok(out)
}

/// What MiniJinja would read as its own is written as a text.
fn literal(text: &str) -> String {
    text.replace("{%", "{{ '{%' }}").replace("{#", "{{ '{#' }}")
}

/// One action: an expression, and plain text around it.
struct Action {
    before: String,
    expression: String,
    after: String,
}

impl Action {
    fn new(expression: impl Into<String>) -> Self {
        Action { before: String::new(), expression: expression.into(), after: String::new() }
    }

    fn through(self, filter: &str) -> Self {
        Action { expression: format!("{} | {filter}", self.expression), ..self }
    }

    fn written(&self, open: &str, close: &str) -> String {
        format!("{}{open} {} {close}{}", literal(&self.before), self.expression, literal(&self.after))
    }
}

fn action_of(pipeline: &str, metrics: &[String]) -> Result<Action, String> {
    let mut commands = split(pipeline)?.into_iter();
    let first = commands.next().unwrap_or_default();
    let mut action = match first.as_slice() {
        [operand] => value(operand, metrics)?,
        [function, args @ .., last] => {
            let last = value(last, metrics)?;
            apply(function, args, last)?
        }
        [] => return Err("an action is empty".to_owned()),
    };
    for command in commands {
        let Some((function, args)) = command.split_first() else {
            return Err("a `|` has nothing behind it".to_owned());
        };
        action = apply(function, args, action)?;
    }
    Ok(action)
}

/// The words of each command between the `|`.
fn split(pipeline: &str) -> Result<Vec<Vec<String>>, String> {
    let mut commands = vec![Vec::new()];
    let mut rest = pipeline.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '|' => {
                commands.push(Vec::new());
                rest = rest[1..].trim_start();
                continue;
            }
            '"' | '`' => rest[1..].find(first).map(|at| at + 2).ok_or("a quote has no end")?,
            '(' | ')' => return Err(format!("`{pipeline}` has brackets")),
            _ => rest.find(|c: char| c.is_whitespace() || c == '|').unwrap_or(rest.len()),
        };
        if let Some(command) = commands.last_mut() {
            command.push(rest[..end].to_owned());
        }
        rest = rest[end..].trim_start();
    }
    Ok(commands)
}

fn value(operand: &str, metrics: &[String]) -> Result<Action, String> {
    let label = operand.strip_prefix("$labels.").or_else(|| operand.strip_prefix(".Labels."));
    if let Some(label) = label {
        return label_of(label, metrics);
    }
    match operand {
        "$value" | ".Value" => Ok(Action::new("value")),
        "$labels" | ".Labels" => Ok(Action::new("labels")),
        quoted if quoted.starts_with(['"', '`']) => {
            let plain = quoted.trim_matches(['"', '`']);
            // Go's escapes are not all MiniJinja's.
            let is_plain = !plain.contains(['\\', '\'']);
            is_plain
                .then(|| Action::new(format!("'{plain}'")))
                .ok_or_else(|| format!("a template has no text {quoted}"))
        }
        number if number.parse::<f64>().is_ok() => Ok(Action::new(number)),
        other => Err(format!("a template has no `{other}`")),
    }
}

fn label_of(label: &str, metrics: &[String]) -> Result<Action, String> {
    let of_gpu = metrics.first().is_some_and(|metric| metric.starts_with("DCGM_") || metric.starts_with("dcgm_"));
    match selector::label(metrics, label) {
        // A GPU may be told by a source that has no address, such as NVML.
        Some(label) if label == "instance" && of_gpu => Ok(Action::new("labels.instance or labels.host")),
        Some(label) => Ok(Action::new(format!("labels.{label}"))),
        None if label == "device" => Ok(Action { before: "nvidia".to_owned(), ..Action::new("labels.gpu") }),
        None => Err(format!("the label `{label}` does not pass Watchfire's door")),
    }
}

fn apply(function: &str, args: &[String], action: Action) -> Result<Action, String> {
    match (function, args) {
        ("humanize", []) => Ok(action.through("humanize")),
        ("humanize1024", []) => Ok(action.through("humanize_bytes")),
        ("humanizePercentage", []) => Ok(action.through("percent")),
        ("humanizeDuration", []) => Ok(Action { after: " s".to_owned(), ..action.through("round(0)") }),
        ("title", []) => Ok(action.through("title")),
        ("toUpper", []) => Ok(action.through("upper")),
        ("toLower", []) => Ok(action.through("lower")),
        ("printf", [format]) => printf(format, action),
        _ => Err(format!("a template has no `{function}`")),
    }
}

/// `printf` with one verb.
fn printf(format: &str, action: Action) -> Result<Action, String> {
    let unknown = || format!("a template has no `printf {format}`");
    let format = format.trim_matches(['"', '`']).replace("\\n", "\n");
    let start = find_verb(&format).ok_or_else(unknown)?;
    let spec = &format[start + 1..];
    let length = spec.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(unknown)?;
    let (flags, verb, after) = (&spec[..length], &spec[length..=length], &spec[length + 1..]);
    if find_verb(after).is_some() {
        return Err(unknown());
    }
    let digits = flags.strip_prefix('.').map(|digits| if digits.is_empty() { "0" } else { digits });
    let action = match (verb, digits, flags) {
        ("f", Some(digits), _) if digits.parse::<u8>().is_ok() => action.through(&format!("round({digits})")),
        ("f", None, "") => action.through("round(6)"),
        ("d", None, "") => action.through("round(0)"),
        ("s" | "v" | "g", None, "") => action,
        _ => return Err(unknown()),
    };
    let plain = |text: &str| text.replace("%%", "%");
    Ok(Action {
        before: format!("{}{}", plain(&format[..start]), action.before),
        after: format!("{}{}", action.after, plain(after)),
        ..action
    })
}

/// Where a `%` begins a verb.
fn find_verb(format: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = format[at..].find('%') {
        match format[at + found + 1..].starts_with('%') {
            true => at += found + 2,
            false => return Some(at + found),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_go_become_texts_of_minijinja() {
        let cases = [
            ("GPU {{ $labels.gpu }} of {{$labels.Hostname}}", "GPU {{ labels.gpu }} of {{ labels.host }}"),
            ("{{ $labels.UUID | toLower }} {{- .Value -}} !", "{{ labels.uuid | lower }} {{- value -}} !"),
            ("{{ printf \"%.2f\" $value }}%", "{{ value | round(2) }}%"),
            ("{{ $value | printf \"%.1f%%\" }}", "{{ value | round(1) }}%"),
            ("{{ printf \"at %d now\" $value }}", "at {{ value | round(0) }} now"),
            ("{{ $value | humanizePercentage }}", "{{ value | percent }}"),
            ("{{ humanize1024 $value }}", "{{ value | humanize_bytes }}"),
            ("{{ $value | humanizeDuration }}", "{{ value | round(0) }} s"),
            ("{{ $labels.device }}", "nvidia{{ labels.gpu }}"),
            ("{{ $labels.instance }}", "{{ labels.instance or labels.host }}"),
            ("{{/* a word */}}{% of }", "{{ '{%' }} of }"),
            ("{{ if $value }}x{{ end }}", "a template has no `if`"),
            ("{{ query \"up\" | first }}", "a template has no `query`"),
            ("{{ $externalURL }}", "a template has no `$externalURL`"),
            ("{{ printf \"%.2f %s\" $value }}", "a template has no `printf \"%.2f %s\"`"),
            ("{{ printf \"%5.1f\" $value }}", "a template has no `printf \"%5.1f\"`"),
            ("{{ $labels.err_msg }}", "the label `err_msg` does not pass Watchfire's door"),
            ("{{ \"it's\" }}", "a template has no text \"it's\""),
            ("{{ (index $labels 0) }}", "`(index $labels 0)` has brackets"),
            ("{{ $value", "a `{{` has no `}}`"),
        ];
        for (text, expected) in cases {
            let got = convert(text, &["DCGM_FI_DEV_GPU_TEMP".to_owned()]).unwrap_or_else(|why| why);
            assert_eq!(got, expected, "{text}");
        }
    }
}
