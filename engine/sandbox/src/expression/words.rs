//! Finds the metrics in the text of an expression, and puts plain names in the place of window functions.

use std::collections::BTreeMap;

use watchfire_core::matcher::Matcher;

use crate::scope::PROMQL;

/// Functions over a window of a metric.
pub const WINDOW_FUNCTIONS: [&str; 10] =
    ["min", "max", "mean", "sum", "count", "stddev", "increase", "rate", "slope", "quantile"];
const KEYWORDS: [&str; 6] = ["true", "false", "in", "if", "else", "is"];

/// Whether there is a value: `has(metric)` makes it optional.
const HAS: &str = "has";
/// The moment, in seconds since 1970: `now()`.
pub const NOW: &str = "now";

/// One thing that an expression reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// The name that stands for it in the rewritten text.
    pub variable: String,
    /// The metric.
    pub metric: String,
    /// The aggregate's name, its number and the window; none = the last value.
    pub window: Option<(String, Option<f64>, String)>,
    /// Only series with these labels; empty for all.
    pub only: Vec<Matcher>,
    /// A row without it is judged all the same: the expression asks `has`.
    pub optional: bool,
}

impl Read {
    /// The name that stands for `has` of it.
    pub fn has(&self) -> String {
        format!("has_{}", self.variable)
    }
}

/// The text with plain names in it, and what they read.
#[derive(Debug, PartialEq)]
pub struct Rewritten {
    /// To be compiled.
    pub text: String,
    /// In order of their first appearance.
    pub reads: Vec<Read>,
}

/// Rewrites one expression; `reads` are those of an expression before it, which share their names.
pub fn rewrite(text: &str, parameters: &BTreeMap<String, f64>, reads: Vec<Read>) -> Result<Rewritten, String> {
    let plain = outside_quotes(text);
    if let Some(banned) = ["//", "/*", "`", ";", "'"].into_iter().find(|banned| plain.contains(banned)) {
        return Err(format!("{banned:?} has no place in an expression"));
    }
    let mut out = Rewritten { text: String::new(), reads };
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (token, after) = split_token(rest, c);
        rest = after;
        if let Some(name) = token.strip_prefix('$') {
            let value =
                parameters.get(name).ok_or_else(|| format!("there is no parameter `${name}`, or it is no number"))?;
            out.text += &format!("({value:?})");
        } else if matches!(c, '{' | '}') {
            return Err(format!("{token:?} has no place in an expression; labels stand right behind a metric's name"));
        } else if !is_name(c) || KEYWORDS.contains(&token) {
            out.text += token;
        } else {
            rest = take_name(token, rest, &mut out)?;
        }
    }
    Ok(out)
}

/// Takes what begins with a name: a call, or a metric with its labels. Answers what follows.
fn take_name<'a>(name: &str, rest: &'a str, out: &mut Rewritten) -> Result<&'a str, String> {
    if let Some(inner) = rest.trim_start().strip_prefix('(') {
        return if name == HAS { take_has(inner, out) } else { take_call(name, inner, out) };
    }
    let (only, rest) = take_labels(rest)?;
    out.text += &variable(name, None, only, &mut out.reads);
    Ok(rest)
}

/// Reads `{label="value", …}`, where it is there. Answers what follows.
fn take_labels(rest: &str) -> Result<(Vec<Matcher>, &str), String> {
    let Some(inner) = rest.trim_start().strip_prefix('{') else { return Ok((Vec::new(), rest)) };
    let end = outside_quotes(inner).find('}').ok_or("the labels have no `}`")?;
    let list = format!("{{{}}}", &inner[..end]);
    let only = Matcher::parse_list(&list).map_err(|error| format!("{list}: {}", error.what))?;
    Ok((only, &inner[end + 1..]))
}

/// The text with spaces in the place of all that is quoted, byte for byte.
fn outside_quotes(text: &str) -> String {
    let (mut out, mut is_quoted, mut is_escaped) = (String::new(), false, false);
    for c in text.chars() {
        let is_quote = c == '"' && !is_escaped;
        is_escaped = is_quoted && c == '\\' && !is_escaped;
        let kept = if is_quoted && !is_quote { ' ' } else { c };
        is_quoted ^= is_quote;
        out.extend(std::iter::repeat_n(kept, if kept == c { 1 } else { c.len_utf8() }));
    }
    out
}

/// Where the bracket closes that was opened before `text`.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    outside_quotes(text).char_indices().find_map(|(at, c)| {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
        None
    })
}

/// Reads what `has(` asks for: a metric or a window of one. Answers what follows.
fn take_has<'a>(inner: &'a str, out: &mut Rewritten) -> Result<&'a str, String> {
    let end = closing(inner).ok_or_else(|| format!("`{HAS}(` has no `)`"))?;
    let asked = inner[..end].trim();
    let mut one = Rewritten { text: String::new(), reads: std::mem::take(&mut out.reads) };
    let name = asked.split(|c| !is_inside(c)).next().unwrap_or_default();
    let rest = if name.starts_with(is_name) { take_name(name, &asked[name.len()..], &mut one)? } else { asked };
    out.reads = one.reads;
    let read = out.reads.iter_mut().find(|read| read.variable == one.text && rest.trim().is_empty());
    let read = read.ok_or_else(|| format!("`{HAS}` asks for a metric or a window of one, not for {asked:?}"))?;
    read.optional = true;
    out.text += &read.has();
    Ok(&inner[end + 1..])
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_inside(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == ':'
}

/// A name with its `$`, a number, a quoted text, or one other character.
fn split_token(text: &str, first: char) -> (&str, &str) {
    let inside = is_inside;
    let end = match first {
        '"' => text[1..].find('"').map_or(text.len(), |at| at + 2),
        '$' => 1 + text[1..].find(|c| !inside(c)).unwrap_or(text.len() - 1),
        c if c.is_ascii_digit() => text.find(|c: char| !(inside(c) || c == '.')).unwrap_or(text.len()),
        c if is_name(c) => text.find(|c| !inside(c)).unwrap_or(text.len()),
        c => c.len_utf8(),
    };
    text.split_at(end)
}

/// Whether a function takes a number between the metric and the window.
fn takes_number(function: &str) -> bool {
    matches!(function, "quantile" | "promql_quantile_over_time" | "promql_predict_linear")
}

/// Reads `metric, "5m")` behind `mean(`, or `metric, 0.99, "5m")` behind `quantile(`; other calls are left as they
/// are. Answers what follows.
fn take_call<'a>(function: &str, inner: &'a str, out: &mut Rewritten) -> Result<&'a str, String> {
    if (function, inner.trim_start().starts_with(')')) == (NOW, true) {
        out.text += NOW;
        return Ok(&inner.trim_start()[1..]);
    }
    let plain = outside_quotes(inner);
    let end = plain.find(')').ok_or_else(|| format!("`{function}(` has no `)`"))?;
    let args = arguments(&inner[..end]);
    let last = args.last().copied().unwrap_or_default();
    let is_nested = plain[..end].contains('(');
    let is_window = WINDOW_FUNCTIONS.contains(&function) || function.starts_with(PROMQL);
    if is_nested || !is_window || !last.starts_with('"') {
        out.text += &format!("{function}(");
        return Ok(inner);
    }
    let number = match (takes_number(function), args.len()) {
        (true, 3) => Some(args[1].parse::<f64>().map_err(|_| match function {
            "quantile" => format!("{:?} is no quantile", args[1]),
            _ => format!("{:?} is no number", args[1]),
        })?),
        (true, _) => {
            return Err(format!("`{function}` needs a metric, a number and a window: {function}(m, 0.99, \"5m\")"));
        }
        (false, 2) => None,
        _ => return Err(format!("`{function}` needs a metric and a window: {function}(m, \"5m\")")),
    };
    let name = args[0].split(|c| !is_inside(c)).next().unwrap_or_default();
    let (only, rest) = take_labels(&args[0][name.len()..])?;
    if !name.starts_with(is_name) || !rest.trim().is_empty() {
        return Err(format!(
            "{:?} is no metric's name; `{function}` looks back at one metric, not at a calculation",
            args[0]
        ));
    }
    let window = (function.to_owned(), number, last.trim_matches('"').to_owned());
    out.text += &variable(name, Some(window), only, &mut out.reads);
    Ok(&inner[end + 1..])
}

/// The parts between the commas that are neither quoted nor in braces.
fn arguments(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0usize);
    for (at, c) in outside_quotes(text).char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

/// The name that stands for what is read; the same thing read twice has one name.
fn variable(
    metric: &str,
    window: Option<(String, Option<f64>, String)>,
    only: Vec<Matcher>,
    reads: &mut Vec<Read>,
) -> String {
    let same = |read: &&Read| read.metric == metric && read.window == window && read.only == only;
    if let Some(known) = reads.iter().find(same) {
        return known.variable.clone();
    }
    let variable = format!("m{}", reads.len());
    reads.push(Read { variable: variable.clone(), metric: metric.to_owned(), window, only, optional: false });
    variable
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(text: &str) -> String {
        let parameters = BTreeMap::from([("low".to_owned(), 0.3)]);
        match rewrite(text, &parameters, Vec::new()) {
            Ok(out) => out.text,
            Err(error) => error,
        }
    }

    #[test]
    fn metrics_become_plain_names() {
        let cases = [
            ("gpu_up < $low && host_load1 > 1e3", "m0 < (0.3) && m1 > 1e3"),
            ("max(mean(a, \"5m\"), b) > 2", "max(m0, m1) > 2"),
            ("a > 1 // so", "\"//\" has no place in an expression"),
            (
                "mean(a * 2, \"5m\") > 2",
                "\"a * 2\" is no metric's name; `mean` looks back at one metric, not at a calculation",
            ),
            ("a > 1 || a < 0", "m0 > 1 || m0 < 0"),
            ("mean(gpu_power_watts, \"5m\") > gpu_power_watts", "m0 > m1"),
            ("quantile(x, 0.99, \"5m\") > 2", "m0 > 2"),
            ("max(a, b) > 2", "max(m0, m1) > 2"),
            ("vllm:queue > 2 && true", "m0 > 2 && true"),
            ("a > $high", "there is no parameter `$high`, or it is no number"),
            ("mean(a > 2", "`mean(` has no `)`"),
            ("a{b=\"x)\", c=~\"(y|z)/*\"} > a", "m0 > m1"),
            ("mean(a{b=\"x,)\"}, \"5m\") > promql_predict_linear(a, -60.5, \"1h\")", "m0 > m1"),
            ("has(a) && a > 1 || !has(mean(b{c=\"}\"}, \"5m\"))", "has_m0 && m0 > 1 || !has_m1"),
            ("now() - a > 600 && abs(a) > 0", "now - m0 > 600 && abs(m0) > 0"),
            ("has(a + b)", "`has` asks for a metric or a window of one, not for \"a + b\""),
            ("has(3)", "`has` asks for a metric or a window of one, not for \"3\""),
            ("a > {b}", "\"{\" has no place in an expression; labels stand right behind a metric's name"),
            ("a{b=} > 1", "{b=}: found '}', expected a value"),
            ("a{b=\"c\" > 1", "the labels have no `}`"),
            ("quantile(a, \"5m\") > 2", "`quantile` needs a metric, a number and a window: quantile(m, 0.99, \"5m\")"),
        ];
        for (text, expected) in cases {
            assert_eq!(rewritten(text), expected, "{text}");
        }
    }
}
