//! Finds the metrics in the text of an expression, and puts plain names in the place of window functions.

use std::collections::BTreeMap;

/// Functions over a window of a metric.
pub const WINDOW_FUNCTIONS: [&str; 10] =
    ["min", "max", "mean", "sum", "count", "stddev", "increase", "rate", "slope", "quantile"];
const KEYWORDS: [&str; 6] = ["true", "false", "in", "if", "else", "is"];

/// One thing that an expression reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// The name that stands for it in the rewritten text.
    pub variable: String,
    /// The metric.
    pub metric: String,
    /// The aggregate's name, its quantile and the window; none = the last value.
    pub window: Option<(String, Option<f64>, String)>,
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
    if let Some(banned) = ["//", "/*", "`", "{", "}", ";", "'"].into_iter().find(|banned| text.contains(banned)) {
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
        } else if !is_name(c) || KEYWORDS.contains(&token) {
            out.text += token;
        } else if let Some(inner) = rest.trim_start().strip_prefix('(') {
            rest = take_call(token, inner, &mut out)?;
        } else {
            out.text += &variable(token, None, &mut out.reads);
        }
    }
    Ok(out)
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

/// Reads `metric, "5m")` behind `mean(`, or `metric, 0.99, "5m")` behind `quantile(`; other calls are left as they
/// are. Answers what follows.
fn take_call<'a>(function: &str, inner: &'a str, out: &mut Rewritten) -> Result<&'a str, String> {
    let end = inner.find(')').ok_or_else(|| format!("`{function}(` has no `)`"))?;
    let args: Vec<&str> = inner[..end].split(',').map(str::trim).collect();
    let last = args.last().copied().unwrap_or_default();
    let is_nested = inner[..end].contains('(');
    if is_nested || !WINDOW_FUNCTIONS.contains(&function) || !last.starts_with('"') {
        out.text += &format!("{function}(");
        return Ok(inner);
    }
    let quantile = match (function, args.len()) {
        ("quantile", 3) => Some(args[1].parse::<f64>().map_err(|_| format!("{:?} is no quantile", args[1]))?),
        ("quantile", _) => {
            return Err("`quantile` needs a metric, a number and a window: quantile(m, 0.99, \"5m\")".to_owned());
        }
        (_, 2) => None,
        _ => return Err(format!("`{function}` needs a metric and a window: {function}(m, \"5m\")")),
    };
    if !args[0].starts_with(is_name) || !args[0].chars().all(is_inside) {
        return Err(format!(
            "{:?} is no metric's name; `{function}` looks back at one metric, not at a calculation",
            args[0]
        ));
    }
    let window = (function.to_owned(), quantile, last.trim_matches('"').to_owned());
    out.text += &variable(args[0], Some(window), &mut out.reads);
    Ok(&inner[end + 1..])
}

/// The name that stands for what is read; the same thing read twice has one name.
fn variable(metric: &str, window: Option<(String, Option<f64>, String)>, reads: &mut Vec<Read>) -> String {
    if let Some(known) = reads.iter().find(|read| read.metric == metric && read.window == window) {
        return known.variable.clone();
    }
    let variable = format!("m{}", reads.len());
    reads.push(Read { variable: variable.clone(), metric: metric.to_owned(), window });
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
            ("quantile(a, \"5m\") > 2", "`quantile` needs a metric, a number and a window: quantile(m, 0.99, \"5m\")"),
        ];
        for (text, expected) in cases {
            assert_eq!(rewritten(text), expected, "{text}");
        }
    }
}
