//! From templates to rules that can be judged. All errors are told at once; a template is taken whole or not at all.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use watchfire_core::engine::Loaded;
use watchfire_door::{Errors, Node};
use watchfire_core::limit::grouped;
use watchfire_sandbox::{ExpressionSpec, LoadError, Module, Sandbox, SettingProblem};
use watchfire_template::{Annotations, ModuleRef, Template, TemplateRule};

use crate::config::limits;
pub use crate::load::TemplateSource;

/// The values that a configuration gives to templates' parameters: template, parameter, value.
pub type Given = BTreeMap<String, BTreeMap<String, Node>>;

/// The rules of a set of templates, ready to be judged.
#[derive(Default)]
pub struct Catalog {
    /// The templates, in order.
    pub templates: Vec<Template>,
    /// The rules with their programs.
    pub(crate) rules: Vec<Loaded>,
    /// The texts of each rule, by its id.
    pub(crate) texts: HashMap<String, Annotations>,
    /// Templates that could not be taken: their file and what is wrong.
    pub broken: Vec<(String, Errors)>,
}

/// Modules that were loaded already: several rules share one.
struct Loader<'a> {
    sandbox: &'a Sandbox,
    modules: HashMap<String, Rc<Module>>,
    /// Memory that the rules started so far may ask for, bytes.
    memory_bytes: u64,
}

/// Why a rule's module is not there.
struct Refused {
    why: String,
    /// Whether the rule's own `limits:` are at fault.
    by_limits: bool,
}

impl From<String> for Refused {
    fn from(why: String) -> Self {
        Refused { why, by_limits: false }
    }
}

impl From<LoadError> for Refused {
    fn from(error: LoadError) -> Self {
        Refused { why: error.to_string(), by_limits: matches!(error, LoadError::Raised(_)) }
    }
}

impl Catalog {
    /// Reads templates and starts their rules. What is wrong is in [`Catalog::broken`].
    pub fn read(sources: &[TemplateSource], given: &Given, sandbox: &Sandbox) -> Self {
        let mut catalog = Catalog::default();
        let mut loader = Loader { sandbox, modules: HashMap::new(), memory_bytes: 0 };
        for source in sources {
            let mut errors = Errors::default();
            if let Some(wanted) = source.text().ok().and_then(|text| needs_newer(&text)) {
                tracing::warn!(file = source.file(), wanted, "the template needs a newer Watchfire and is left out");
                continue;
            }
            match catalog.read_one(source, given, &mut loader, &mut errors) {
                Some((template, rules)) if errors.is_empty() => catalog.take(template, rules),
                _ => catalog.broken.push((source.file(), errors)),
            }
        }
        catalog
    }

    fn read_one(
        &self,
        source: &TemplateSource,
        given: &Given,
        loader: &mut Loader<'_>,
        errors: &mut Errors,
    ) -> Option<(Template, Vec<Loaded>)> {
        let file = source.file();
        let start = watchfire_door::Place { file: file.as_str().into(), line: 1, column: 1 };
        let text = source.text().map_err(|why| errors.add(&start, format!("the file cannot be read: {why}"))).ok()?;
        let shipped: Vec<&str> = watchfire_rules::modules().iter().map(|(name, _)| *name).collect();
        let empty = BTreeMap::new();
        let given = name_of(&text).and_then(|name| given.get(&name)).unwrap_or(&empty);
        let template = watchfire_template::read(&file, &text, given, &shipped, errors)?;
        if self.templates.iter().any(|other| other.name == template.name) {
            errors.add(&start, format!("template `{}` is there twice; template names must differ", template.name));
        }
        let rules = template.rules.iter().filter_map(|rule| loader.start(source, rule, errors)).collect();
        Some((template, rules))
    }

    fn take(&mut self, template: Template, rules: Vec<Loaded>) {
        for rule in &template.rules {
            self.texts.insert(rule.spec.id.to_string(), rule.annotations.clone());
        }
        self.rules.extend(rules);
        self.templates.push(template);
    }

    /// All that is wrong with all templates.
    pub fn errors(&self) -> Errors {
        let mut all = Errors::default();
        self.broken.iter().for_each(|(_, errors)| all.extend(errors.clone()));
        all
    }

    /// Leaves only the rules with these alerts' names; all where none is named.
    pub fn only(&mut self, alerts: &[String]) {
        if !alerts.is_empty() {
            self.rules.retain(|(spec, _)| alerts.iter().any(|alert| **alert == *spec.alert));
        }
    }
}

/// The name that a template's text gives itself: the configuration's values are found by it.
pub(crate) fn name_of(text: &str) -> Option<String> {
    top_value(text, "template:")
}

/// What stands behind a key of the first column. Looked at before the file is read strictly: a newer template may
/// have keys that are not known here.
fn top_value(text: &str, key: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(line.split('#').next()?.trim().trim_matches(['"', '\'']).to_owned())
}

/// The version of Watchfire that a template asks for, where it is a newer one than this.
fn needs_newer(text: &str) -> Option<String> {
    let wanted = top_value(text, "min_version:")?;
    let numbers = |version: &str| version.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u32>>();
    (numbers(&wanted) > numbers(env!("CARGO_PKG_VERSION"))).then_some(wanted)
}

impl Loader<'_> {
    fn start(&mut self, source: &TemplateSource, rule: &TemplateRule, errors: &mut Errors) -> Option<Loaded> {
        let own = rule.limits.as_ref().map(|node| limits::changes(node, errors)).unwrap_or_default();
        let sandbox = self.sandbox.with_limits(own);
        let module = match self.module(&sandbox, source, rule.module.as_ref()?, &rule.spec.alert) {
            Ok(module) => module,
            Err(Refused { why, by_limits }) => {
                let place = rule.limits.as_ref().filter(|_| by_limits).map_or(&rule.place, Node::place);
                errors.add(place, format!("{}: {why}", rule.spec.alert));
                return None;
            }
        };
        if let Err(why) = self.admit(module.memory_bytes()) {
            errors.add(&rule.place, format!("{}: {why}", rule.spec.alert));
            return None;
        }
        if let Err(problems) = module.validate(&rule.settings) {
            problems.iter().for_each(|problem| refuse_setting(rule, problem, errors));
            return None;
        }
        match module.start(&rule.settings) {
            Ok(program) => Some((rule.spec.clone(), program)),
            Err(why) => {
                errors.add(&rule.place, format!("{}: {why}", rule.spec.alert));
                None
            }
        }
    }

    fn module(
        &mut self,
        sandbox: &Sandbox,
        source: &TemplateSource,
        module: &ModuleRef,
        alert: &str,
    ) -> Result<Rc<Module>, Refused> {
        match module {
            ModuleRef::Expression { when, until, value, severity, scope, parameters } => {
                let spec = ExpressionSpec {
                    name: alert.to_owned(),
                    when: when.clone(),
                    until: until.clone(),
                    value: value.clone(),
                    severity: *severity,
                    scope: *scope,
                    parameters: parameters.clone(),
                };
                Ok(sandbox.expression(spec).map(Rc::new)?)
            }
            ModuleRef::Shipped(name) => self.shared(name, sandbox, |sandbox| {
                let bytes = watchfire_rules::module(name).ok_or_else(|| format!("there is no module `{name}`"))?;
                Ok(sandbox.wasm(name, bytes)?)
            }),
            ModuleRef::Wasm(path) => {
                let (file, bytes) = source.beside(path).map_err(|why| format!("module {path}: {why}"))?;
                let named = |refused: Refused| Refused { why: format!("module {path}: {}", refused.why), ..refused };
                self.shared(&file, sandbox, |sandbox| Ok(sandbox.wasm(&file, &bytes)?)).map_err(named)
            }
            ModuleRef::Rhai(path) => {
                let (file, bytes) = source.beside(path).map_err(|why| format!("module {path}: {why}"))?;
                let text = String::from_utf8(bytes).map_err(|_| format!("module {path}: it is no UTF-8 text"))?;
                self.shared(&file, sandbox, |sandbox| Ok(sandbox.rhai(path, &file, &text)?))
            }
        }
    }

    /// Whether the memory of one more rule fits beside that of the others.
    fn admit(&mut self, bytes: u64) -> Result<(), String> {
        let (wanted, total) = (self.memory_bytes.saturating_add(bytes), self.sandbox.total_memory_bytes());
        if wanted > total {
            return Err(format!(
                "with it the rules may use {} of {} bytes of memory; lower limits.memory_bytes of some, or raise limits.total_memory_bytes, see docs/limits.md",
                grouped(wanted), grouped(total)
            ));
        }
        self.memory_bytes = wanted;
        Ok(())
    }

    /// A module that rules with the same limits share.
    fn shared(
        &mut self,
        name: &str,
        sandbox: &Sandbox,
        load: impl FnOnce(&Sandbox) -> Result<Module, Refused>,
    ) -> Result<Rc<Module>, Refused> {
        let key = format!("{name} {:?}", sandbox.changes());
        if let Some(known) = self.modules.get(&key) {
            return Ok(known.clone());
        }
        let module = Rc::new(load(sandbox)?);
        self.modules.insert(key, module.clone());
        Ok(module)
    }
}

fn refuse_setting(rule: &TemplateRule, problem: &SettingProblem, errors: &mut Errors) {
    let place = rule.settings_node.as_ref().map_or_else(|| rule.place.clone(), |node| node.place_of(&problem.path));
    let path = if problem.path.is_empty() { String::new() } else { format!("`{}`: ", problem.path) };
    errors.add(&place, format!("{path}{}", problem.message));
}

impl Catalog {
    /// Leaves out templates that are not for a host with these labels and facts. A template asks only for what is
    /// known of the host: an unknown fact excludes nothing.
    pub fn keep_for(&mut self, host: &watchfire_core::Labels) {
        self.templates.retain(|template| {
            let known = template.applies_to.iter().all(|(name, _)| host.get(name).is_some());
            !known || template.applies_to(host)
        });
        let names: Vec<&str> = self.templates.iter().map(|template| template.name.as_str()).collect();
        self.rules.retain(|(spec, _)| names.contains(&&*spec.template));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_for_a_newer_watchfire_is_told_apart() {
        for (version, newer) in
            [("0.0.9", false), ("0.1.0", false), ("0.1.1", true), ("\"1.0\"", true), ("0.10.0", true)]
        {
            let text = format!("template: t\nmin_version: {version} # why\nsome_new_key: 1\n");
            assert_eq!(needs_newer(&text).is_some(), newer, "{version}");
        }
    }
}
