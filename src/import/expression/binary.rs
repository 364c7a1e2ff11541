//! Operators.

use promql_parser::parser::{BinaryExpr, LabelModifier, VectorMatchCardinality};

use super::super::{Refusal, selector};
use super::words::{Binds, Text};
use super::{Value, Vector, Walk, shorten};

impl Walk {
    pub(super) fn binary(&mut self, binary: &BinaryExpr) -> Result<Value, Refusal> {
        let op = binary.op.to_string();
        let (left, right) = (self.value(&binary.lhs)?, self.value(&binary.rhs)?);
        let returns_bool = binary.return_bool();
        match (left, right) {
            (Value::Vector(left), Value::Vector(right)) => {
                self.check_matching(binary, &left, &right)?;
                match op.as_str() {
                    "and" | "or" | "unless" => Ok(Value::Vector(set(&op, left, right))),
                    _ => between_vectors(&op, left, right, returns_bool, binary),
                }
            }
            (Value::Vector(vector), Value::Scalar { text, constant }) => {
                with_scalar(&op, vector, (&text, constant), false, returns_bool, binary)
            }
            (Value::Scalar { text, constant }, Value::Vector(vector)) => {
                with_scalar(&op, vector, (&text, constant), true, returns_bool, binary)
            }
            (Value::Scalar { text: left, constant: a }, Value::Scalar { text: right, constant: b }) => {
                if let Some(known) = a.zip(b).and_then(|(a, b)| fold(&op, a, b)) {
                    return Ok(Value::known(known));
                }
                let (sign, binds) =
                    operator(&op).filter(|(_, binds)| is_arithmetic(*binds)).ok_or_else(|| unknown(&op, binary))?;
                Ok(Value::Scalar { text: left.with(sign, binds, &right), constant: None })
            }
        }
    }

    /// Elements find each other by all their labels. Other ways are taken only where they come to the same.
    fn check_matching(&mut self, binary: &BinaryExpr, left: &Vector, right: &Vector) -> Result<(), Refusal> {
        let Some(modifier) = &binary.modifier else { return Ok(()) };
        if matches!(modifier.card, VectorMatchCardinality::ManyToOne(_) | VectorMatchCardinality::OneToMany(_)) {
            let join = if matches!(modifier.card, VectorMatchCardinality::ManyToOne(_)) {
                "group_left"
            } else {
                "group_right"
            };
            return Err(Refusal::new(shorten(binary), format!("`{join}` joins series of different things; a row stands for one"))
                .instead("leave the join out where it only adds labels; else write a module, over whose rows a host's value is spread"));
        }
        if modifier.fill_values.lhs.is_some() || modifier.fill_values.rhs.is_some() {
            return Err(Refusal::new(shorten(binary), "`fill` is not of Prometheus 2").instead("ask `has(metric)`"));
        }
        match &modifier.matching {
            None => Ok(()),
            Some(LabelModifier::Exclude(labels)) if labels.is_empty() => Ok(()),
            Some(LabelModifier::Exclude(labels)) => Err(Refusal::new(
                shorten(binary),
                format!("`ignoring ({labels})` puts together series whose labels differ; a row stands for those that have all alike"),
            )
            .instead("derive one of them under the labels of the other in a module (`outputs`)")),
            Some(LabelModifier::Include(labels)) => {
                let metrics: Vec<&String> = left.metrics.iter().chain(&right.metrics).collect();
                if !selector::identifies(&metrics, &labels.labels) {
                    return Err(Refusal::new(
                        shorten(binary),
                        format!("`on ({labels})` puts together series whose other labels differ; a row stands for those that have all alike"),
                    )
                    .instead("leave `on` out where both sides have the same labels"));
                }
                selector::add(&mut self.remarks, format!("`on ({labels})` is left out: these labels tell the series apart, and all others are alike"));
                Ok(())
            }
        }
    }
}

fn both(a: &Option<Text>, b: &Option<Text>) -> Option<Text> {
    match (a, b) {
        (Some(a), Some(b)) if a == b => Some(a.clone()),
        (Some(a), Some(b)) => Some(a.and(b)),
        (one, None) | (None, one) => one.clone(),
    }
}

fn set(op: &str, left: Vector, right: Vector) -> Vector {
    let always = || Text::atom("true");
    let theirs = right.wanted().unwrap_or_else(always);
    if op != "or" {
        let condition = if op == "and" { theirs } else { theirs.not() };
        return Vector { present: both(&left.present, &Some(condition)), ..left }
            .joined(&Vector { reads: Vec::new(), ..right });
    }
    let ours = left.wanted().unwrap_or_else(always);
    let (one, other) = (left.unscaled(), right.unscaled());
    let value = match one == other {
        true => one,
        false => Text::atom(format!("either({}, {}, {})", ours.0, one.0, other.0)),
    };
    Vector { present: Some(ours.or(&theirs)), value, scale: 1.0, ..left }.joined(&right)
}

fn operator(op: &str) -> Option<(&'static str, Binds)> {
    Some(match op {
        "+" => ("+", Binds::Add),
        "-" => ("-", Binds::Add),
        "*" => ("*", Binds::Multiply),
        "/" => ("/", Binds::Multiply),
        "%" => ("%", Binds::Multiply),
        "^" => ("**", Binds::Power),
        "==" => ("==", Binds::Equal),
        "!=" => ("!=", Binds::Equal),
        ">" => (">", Binds::Compare),
        "<" => ("<", Binds::Compare),
        ">=" => (">=", Binds::Compare),
        "<=" => ("<=", Binds::Compare),
        _ => return None,
    })
}

fn is_arithmetic(binds: Binds) -> bool {
    binds >= Binds::Add
}

fn unknown(op: &str, binary: &BinaryExpr) -> Refusal {
    Refusal::new(shorten(binary), format!("a template has no `{op}` here"))
}

#[expect(clippy::float_cmp, reason = "as Prometheus compares")]
fn fold(op: &str, a: f64, b: f64) -> Option<f64> {
    let holds = |holds: bool| f64::from(u8::from(holds));
    Some(match op {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        "%" => a % b,
        "^" => a.powf(b),
        "==" => holds(a == b),
        "!=" => holds(a != b),
        ">" => holds(a > b),
        "<" => holds(a < b),
        ">=" => holds(a >= b),
        "<=" => holds(a <= b),
        _ => return None,
    })
}

/// What a comparison leaves: the left side's elements for which it is true, or 1 and 0 for all.
fn compared(met: Text, returns_bool: bool, vector: Vector) -> Value {
    Value::Vector(if returns_bool {
        Vector { value: Text::atom(format!("either({}, 1.0, 0.0)", met.0)), scale: 1.0, ..vector }
    } else {
        Vector { present: both(&vector.present, &Some(met)), ..vector }
    })
}

#[expect(clippy::float_cmp, reason = "factors are exact")]
fn between_vectors(
    op: &str,
    left: Vector,
    right: Vector,
    returns_bool: bool,
    binary: &BinaryExpr,
) -> Result<Value, Refusal> {
    let (sign, binds) = operator(op).ok_or_else(|| unknown(op, binary))?;
    let keeps_units = matches!(op, "*" | "/");
    let alike = left.scale == right.scale && !matches!(op, "%" | "^");
    let (left, right) =
        if keeps_units || alike { (left, right) } else { (left.in_their_unit(), right.in_their_unit()) };
    let text = left.value.with(sign, binds, &right.value);
    let vector = Vector { present: both(&left.present, &right.present), ..left }.joined(&right);
    if !is_arithmetic(binds) {
        return Ok(compared(text, returns_bool, vector));
    }
    let scale = match op {
        "*" => vector.scale * right.scale,
        "/" => vector.scale / right.scale,
        _ => vector.scale,
    };
    Ok(Value::Vector(Vector { value: text, scale, ..vector }))
}

fn with_scalar(
    op: &str,
    vector: Vector,
    scalar: (&Text, Option<f64>),
    is_left: bool,
    returns_bool: bool,
    binary: &BinaryExpr,
) -> Result<Value, Refusal> {
    let (sign, binds) = operator(op).ok_or_else(|| unknown(op, binary))?;
    let needs_their_unit = matches!(op, "%" | "^") || (op == "/" && is_left);
    let vector = if needs_their_unit { vector.in_their_unit() } else { vector };
    let scale = if matches!(op, "*" | "/") { 1.0 } else { vector.scale };
    let scalar = Value::scaled(scalar.0, scalar.1, scale);
    let text = if is_left { scalar.with(sign, binds, &vector.value) } else { vector.value.with(sign, binds, &scalar) };
    Ok(if is_arithmetic(binds) {
        Value::Vector(Vector { value: text, ..vector })
    } else {
        compared(text, returns_bool, vector)
    })
}
