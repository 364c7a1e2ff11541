//! The rule as the host calls it: what stands between the contract's functions and [`Rule`].

use crate::{Batch, Descriptor, Outcome, Report, Rows, Rule, SettingError, Shape, Target};

/// A rule with its settings and the batch that it judged last.
#[derive(Debug)]
pub struct Running<R> {
    rule: R,
    last: Option<Batch>,
}

/// Reads settings; what is wrong is told with its path.
fn settings<R: Rule>(json: &str) -> Result<R, Vec<SettingError>> {
    let json = if json.is_empty() { "{}" } else { json };
    let settings: R::Settings = serde_json::from_str(json).map_err(|error| vec![setting_error(&error.to_string())])?;
    R::new(settings)
}

/// serde tells the place of a fault in the text; what an author needs is the name of the key, which its message
/// gives in back-quotes for unknown and missing fields.
fn setting_error(message: &str) -> SettingError {
    let message = message.split(" at line ").next().unwrap_or(message);
    let is_named = message.starts_with("unknown field") || message.starts_with("missing field");
    let path = message.split('`').nth(1).filter(|_| is_named).unwrap_or("");
    SettingError { path: path.to_owned(), message: message.to_owned() }
}

/// `describe` of the contract.
pub fn describe<R: Rule>(running: Option<&Running<R>>) -> Descriptor {
    R::shape(running.map(|running| &running.rule)).describe::<R>()
}

/// `validate-settings` of the contract.
///
/// # Errors
/// All that is wrong with the settings.
pub fn validate_settings<R: Rule>(json: &str) -> Result<(), Vec<SettingError>> {
    settings::<R>(json).map(drop)
}

/// `configure` of the contract.
///
/// # Errors
/// All that is wrong with the settings, in one line.
pub fn configure<R: Rule>(json: &str) -> Result<Running<R>, String> {
    let rule = settings::<R>(json).map_err(|errors| {
        let lines = errors.iter().map(|error| format!("{}: {}", error.path, error.message));
        lines.collect::<Vec<_>>().join("; ")
    })?;
    Ok(Running { rule, last: None })
}

impl<R: Rule> Running<R> {
    /// `on-targets` of the contract.
    ///
    /// # Errors
    /// The rule's own.
    pub fn on_targets(&mut self, targets: &[Target]) -> Result<(), String> {
        self.rule.on_targets(targets)
    }

    /// `evaluate` of the contract.
    ///
    /// # Errors
    /// The rule's own.
    pub fn evaluate(&mut self, batch: Batch) -> Result<Outcome, String> {
        let batch = self.last.insert(batch);
        let rows = Rows::new(batch);
        let mut report = Report::new(&rows);
        self.rule.evaluate(&rows, &mut report)?;
        Ok(report.into_outcome(R::shape(Some(&self.rule)).n_outputs()))
    }

    /// `explain` of the contract.
    pub fn explain(&self, row: u32) -> Option<String> {
        self.rule.explain(&Rows::new(self.last.as_ref()?), row as usize)
    }

    /// `migrate-state` of the contract.
    ///
    /// # Errors
    /// The rule cannot, or gives another number of slots than it has.
    pub fn migrate_state(&self, old_version: u32, slots: u32, rows: u32, state: &[f64]) -> Result<Vec<f64>, String> {
        let (rows, own) = (rows as usize, self.shape().n_slots());
        if state.len() != slots as usize * rows {
            return Err(format!("{} numbers for {rows} rows of {slots} slots", state.len()));
        }
        let mut migrated = vec![0.0; own * rows];
        for row in 0..rows {
            let kept: Vec<f64> = state.iter().skip(row).step_by(rows).copied().collect();
            let numbers = self.rule.migrate_state(old_version, &kept);
            let numbers = numbers.ok_or_else(|| format!("the rule carries no state of version {old_version} over"))?;
            if numbers.len() != own {
                return Err(format!("`migrate_state` gave {} numbers, expected {own}", numbers.len()));
            }
            numbers.iter().enumerate().for_each(|(slot, number)| migrated[slot * rows + row] = *number);
        }
        Ok(migrated)
    }

    /// What it reads, writes and keeps.
    pub fn shape(&self) -> Shape {
        R::shape(Some(&self.rule))
    }
}

/// Sends a panic's message to the host before the module traps: without it an author would see only
/// "unreachable".
pub fn tell_panics() {
    std::panic::set_hook(Box::new(|panic| crate::bindings::watchfire::rule::host::log(&panic.to_string())));
}

/// Exports a [`Rule`](crate::Rule) as the module's one rule. Compiled natively it does nothing.
#[macro_export]
macro_rules! export {
    ($rule:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            use $crate::bindings::exports::watchfire::rule::rule as contract;
            use $crate::guest;

            ::std::thread_local! {
                static RUNNING: ::std::cell::RefCell<Option<guest::Running<$rule>>> =
                    const { ::std::cell::RefCell::new(None) };
            }

            struct Component;

            impl contract::Guest for Component {
                fn describe() -> contract::Descriptor {
                    RUNNING.with_borrow(|running| guest::describe(running.as_ref()))
                }
                fn validate_settings(json: String) -> Result<(), Vec<contract::SettingError>> {
                    guest::validate_settings::<$rule>(&json)
                }
                fn configure(json: String) -> Result<(), String> {
                    guest::tell_panics();
                    let running = guest::configure::<$rule>(&json)?;
                    RUNNING.set(Some(running));
                    Ok(())
                }
                fn on_targets(targets: Vec<contract::Target>) -> Result<(), String> {
                    RUNNING.with_borrow_mut(|running| match running {
                        Some(running) => running.on_targets(&targets),
                        None => Err("the rule is not configured".to_owned()),
                    })
                }
                fn evaluate(batch: contract::Batch) -> Result<contract::Outcome, String> {
                    RUNNING.with_borrow_mut(|running| match running {
                        Some(running) => running.evaluate(batch),
                        None => Err("the rule is not configured".to_owned()),
                    })
                }
                fn explain(row: u32) -> Result<Option<String>, String> {
                    Ok(RUNNING.with_borrow(|running| running.as_ref()?.explain(row)))
                }
            }

            impl $crate::bindings::exports::watchfire::rule::migrate::Guest for Component {
                fn migrate_state(version: u32, slots: u32, rows: u32, state: Vec<f64>) -> Result<Vec<f64>, String> {
                    RUNNING.with_borrow(|running| match running {
                        Some(running) => running.migrate_state(version, slots, rows, &state),
                        None => Err("the rule is not configured".to_owned()),
                    })
                }
            }

    $crate::bindings::export!(Component with_types_in $crate::bindings);
        };
    };
}
