//! PromQL into an expression of a template. An instant vector is told by two texts: when an element is there, and its
//! value; rows stand for its elements.

mod binary;
mod call;
mod words;

use promql_parser::parser::{self, Expr};

use super::Refusal;
use super::selector;
use words::Text;

/// The longest expression that is read, bytes; the parser's own stack is not ours.
const EXPRESSION_BYTES_MAX: usize = 16 * 1024;
/// The deepest nesting that is read.
const DEPTH_MAX: usize = 64;

/// An expression of a template, and what is to be known about it.
pub(super) struct Said {
    pub when: String,
    /// The number to show, where it is not that of the only metric.
    pub value: Option<String>,
    /// The metrics as Prometheus calls them.
    pub metrics: Vec<String>,
    pub remarks: Vec<String>,
}

/// What a part of an expression is.
#[derive(Clone, Debug)]
enum Value {
    /// One number, in Prometheus' unit.
    Scalar {
        text: Text,
        /// Where it is known already.
        constant: Option<f64>,
    },
    /// Elements.
    Vector(Vector),
}

#[derive(Clone, Debug)]
struct Vector {
    /// When an element is there, beyond that all it reads is there.
    present: Option<Text>,
    value: Text,
    /// One of Prometheus' units is so many of ours.
    scale: f64,
    metrics: Vec<String>,
    /// What is read of them.
    reads: Vec<String>,
}

/// Goes through an expression.
struct Walk {
    /// Whether elements may be there without all that the expression reads: it has an `or` or `unless`.
    is_partial: bool,
    remarks: Vec<String>,
    depth: usize,
}

/// Converts the text of an expression.
pub(super) fn convert(text: &str) -> Result<Said, Refusal> {
    let text = text.trim();
    if text.len() > EXPRESSION_BYTES_MAX {
        return Err(Refusal::new("", format!("it has {} bytes; at most {EXPRESSION_BYTES_MAX} are read", text.len())));
    }
    if nesting(text) > DEPTH_MAX {
        return Err(Refusal::new("", format!("its brackets nest deeper than {DEPTH_MAX}")));
    }
    let parsed = parser::parse(text).map_err(|why| Refusal::new(shorten(text), format!("it is no PromQL: {why}")))?;
    let mut walk = Walk { is_partial: is_partial(&parsed), remarks: Vec::new(), depth: 0 };
    let vector = match walk.value(&parsed)? {
        Value::Vector(vector) => vector,
        Value::Scalar { .. } => {
            return Err(Refusal::new(shorten(text), "it reads no metric; every evaluation of it is the same"));
        }
    };
    let Some(when) = vector.present.clone() else {
        return Err(Refusal::new(shorten(text), "it compares with nothing: it would fire while the metric is there")
            .instead("compare it, such as with `> 0`"));
    };
    let shown = vector.unscaled();
    // The number of the first metric is shown unless another is asked for.
    let value = (!shown.is_metric() || !words::begins_with(&when.0, &shown.0)).then(|| shown.0.clone());
    Ok(Said { when: when.0, value, metrics: vector.metrics, remarks: walk.remarks })
}

/// How deep brackets nest, quotes or not.
fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

fn is_partial(expr: &Expr) -> bool {
    match expr {
        Expr::Binary(binary) => {
            matches!(binary.op.to_string().as_str(), "or" | "unless")
                || is_partial(&binary.lhs)
                || is_partial(&binary.rhs)
        }
        Expr::Paren(paren) => is_partial(&paren.expr),
        Expr::Unary(unary) => is_partial(&unary.expr),
        Expr::Call(call) => call.args.args.iter().any(|arg| is_partial(arg)),
        _ => false,
    }
}

/// A part of an expression as a report shows it.
fn shorten(part: impl ToString) -> String {
    const SHOWN_MAX: usize = 160;
    let text = part.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(SHOWN_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

impl Walk {
    fn value(&mut self, expr: &Expr) -> Result<Value, Refusal> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Refusal::new("", format!("it nests deeper than {DEPTH_MAX}")));
        }
        let value = self.value_of(expr)?;
        self.depth -= 1;
        // An `or` has its condition twice: nested ones would grow without end.
        if value.bytes() > EXPRESSION_BYTES_MAX {
            return Err(Refusal::new(shorten(expr), format!("it would become more than {EXPRESSION_BYTES_MAX} bytes")));
        }
        Ok(value)
    }

    fn value_of(&mut self, expr: &Expr) -> Result<Value, Refusal> {
        match expr {
            Expr::NumberLiteral(number) => Ok(words::constant(number.val)),
            Expr::Paren(paren) => self.value(&paren.expr),
            Expr::Unary(unary) => Ok(match self.value(&unary.expr)? {
                Value::Scalar { constant: Some(number), .. } => words::constant(-number),
                Value::Scalar { text, constant } => Value::Scalar { text: text.negated(), constant },
                Value::Vector(vector) => Value::Vector(Vector { value: vector.value.clone().negated(), ..vector }),
            }),
            Expr::VectorSelector(found) => {
                let selector = selector::convert(found, &mut self.remarks)?;
                Ok(Value::Vector(self.read(Text::atom(selector.text), selector.scale, selector.foreign)))
            }
            Expr::Binary(binary) => self.binary(binary),
            Expr::Call(call) => self.call(call),
            Expr::Aggregate(aggregate) => Err(words::aggregation(aggregate)),
            Expr::Subquery(_) => Err(Refusal::new(
                shorten(expr),
                "a subquery evaluates an expression at many times; a window looks back at one metric",
            )
            .instead("derive the inner expression as a metric in a module (`outputs`), and look back at that")),
            Expr::StringLiteral(_) | Expr::MatrixSelector(_) | Expr::Extension(_) => {
                Err(Refusal::new(shorten(expr), "it is no number"))
            }
        }
    }

    /// What is read of one metric: itself, or a window of it.
    fn read(&self, text: Text, scale: f64, foreign: String) -> Vector {
        let present = self.is_partial.then(|| Text::atom(format!("has({})", text.0)));
        Vector { present, reads: vec![text.0.clone()], value: text, scale, metrics: vec![foreign] }
    }
}

impl Value {
    /// How long its texts are.
    fn bytes(&self) -> usize {
        match self {
            Value::Scalar { text, .. } => text.0.len(),
            Value::Vector(vector) => vector.value.0.len() + vector.present.as_ref().map_or(0, |text| text.0.len()),
        }
    }
}

impl Vector {
    /// The value in Prometheus' unit.
    fn unscaled(&self) -> Text {
        words::rescaled(&self.value, self.scale)
    }

    /// When an element is there, all that it needs told in words.
    fn wanted(&self) -> Option<Text> {
        let said = self.present.as_ref().map_or("", |present| &present.0);
        let unsaid = self.reads.iter().filter(|read| !words::mentions(said, read));
        unsaid.map(|read| Text::atom(format!("has({read})"))).chain(self.present.clone()).reduce(|a, b| a.and(&b))
    }

    /// The metrics and what is read of them, of both.
    fn joined(self, other: &Vector) -> Vector {
        let all = |ours: Vec<String>, theirs: &[String]| ours.into_iter().chain(theirs.iter().cloned()).collect();
        Vector { metrics: all(self.metrics, &other.metrics), reads: all(self.reads, &other.reads), ..self }
    }

    fn in_their_unit(self) -> Vector {
        Vector { value: self.unscaled(), scale: 1.0, ..self }
    }
}
