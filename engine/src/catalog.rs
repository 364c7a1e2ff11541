//! From templates to rules that can be judged. All errors are told at once; a template is taken whole or not at all.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use watchfire_core::RuleSpec;
use watchfire_core::engine::{Candidate, check_rule};
use watchfire_core::limit::grouped;
use watchfire_door::{Errors, Node};
use watchfire_sandbox::{ExpressionSpec, LoadError, Module, Sandbox, SettingProblem};
use watchfire_template::scenario::Reads;
use watchfire_template::{Annotations, ModuleRef, Template, TemplateRule};

use crate::config::limits;
pub use crate::load::TemplateSource;
use crate::module_store::{ModuleStore, hex};
use crate::status::TemplateReport;

/// The values that a configuration gives to templates' parameters: template, parameter, value.
pub type Given = BTreeMap<String, BTreeMap<String, Node>>;

/// The rules of a set of templates, ready to be judged.
#[derive(Default)]
pub struct Catalog {
    /// The templates, in order.
    pub templates: Vec<Template>,
    /// The rules with their programs.
    pub(crate) rules: Vec<Candidate>,
    /// What each rule was made of, by its id.
    pub(crate) made: HashMap<String, Made>,
    /// The texts of each rule, by its id.
    pub(crate) texts: HashMap<String, Annotations>,
    /// What the rules read, those included that [`Catalog::only`] left out.
    pub(crate) reads: Reads,
    /// Templates that could not be taken: their file and what is wrong.
    pub broken: Vec<(String, Errors)>,
}

/// All that a rule is made of: where it is the same, so is the rule, and it need not be built again.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Made {
    spec: RuleSpec,
    pub(crate) settings: serde_json::Value,
    /// The module's kind and SHA-256, or the expression, and its limits.
    pub(crate) module: String,
    /// Memory that it may ask for, bytes.
    memory_bytes: u64,
}

impl Made {
    fn is_as(&self, other: &Made) -> bool {
        (&self.spec, &self.settings, &self.module) == (&other.spec, &other.settings, &other.module)
    }
}

/// Which of the templates' rules are meant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// Labels and facts of the host, where they are known: templates that are for others are left out.
    pub host: Option<watchfire_core::Labels>,
    /// Only the rules with these alerts' names; all where none is named.
    pub only: Vec<String>,
}

/// Modules that were loaded already: several rules share one.
struct Loader<'a> {
    sandbox: &'a Sandbox,
    /// Where modules of registries lie.
    store: Option<&'a ModuleStore>,
    /// By [`Made::module`].
    modules: HashMap<String, Rc<Module>>,
    /// What the loaded rules were made of.
    known: &'a HashMap<String, Made>,
    /// Memory that the rules started so far may ask for, bytes.
    memory_bytes: u64,
}

/// A module before it is loaded.
enum Raw {
    Expression(Box<ExpressionSpec>),
    Wasm(String, Vec<u8>),
    Rhai(String, String),
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
    pub fn read(sources: &[TemplateSource], given: &Given, sandbox: &Sandbox, store: Option<&ModuleStore>) -> Self {
        Catalog::read_after(sources, given, sandbox, store, &HashMap::new())
    }

    /// As [`Catalog::read`]; a rule that is made of what a known one is made of is not built again.
    pub(crate) fn read_after(
        sources: &[TemplateSource],
        given: &Given,
        sandbox: &Sandbox,
        store: Option<&ModuleStore>,
        known: &HashMap<String, Made>,
    ) -> Self {
        let mut catalog = Catalog::default();
        let mut loader = Loader { sandbox, store, modules: HashMap::new(), known, memory_bytes: 0 };
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
    ) -> Option<(Template, Vec<(Made, Candidate)>)> {
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

    fn take(&mut self, template: Template, rules: Vec<(Made, Candidate)>) {
        for rule in &template.rules {
            self.texts.insert(rule.spec.id.to_string(), rule.annotations.clone());
        }
        for (made, candidate) in rules {
            note_reads(&mut self.reads, &candidate);
            self.made.insert(made.spec.id.to_string(), made);
            self.rules.push(candidate);
        }
        self.templates.push(template);
    }

    /// What `status` says of the templates.
    pub(crate) fn reports(&self) -> Vec<TemplateReport> {
        let report = |template: &Template| TemplateReport {
            name: template.name.clone(),
            version: template.version.clone(),
            rules: template.rules.len(),
        };
        self.templates.iter().map(report).collect()
    }

    /// What `status` says of those that could not be taken.
    pub(crate) fn broken_texts(&self) -> Vec<(String, String)> {
        self.broken.iter().map(|(file, errors)| (file.clone(), errors.to_string())).collect()
    }

    /// All that is wrong with all templates.
    pub fn errors(&self) -> Errors {
        let mut all = Errors::default();
        self.broken.iter().for_each(|(_, errors)| all.extend(errors.clone()));
        all
    }

    /// The program of one rule, by its id.
    pub(crate) fn into_program(self, rule: &str) -> Option<Box<dyn watchfire_core::Program>> {
        self.rules.into_iter().find_map(|candidate| match candidate {
            Candidate::New(spec, program) if *spec.id == *rule => Some(program),
            _ => None,
        })
    }

    /// Leaves only the rules that are meant.
    pub(crate) fn select(&mut self, selection: &Selection) {
        if let Some(host) = &selection.host {
            self.keep_for(host);
        }
        if !selection.only.is_empty() {
            self.rules.retain(|rule| selection.only.iter().any(|alert| **alert == *rule.spec().alert));
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

/// Of a rule that stays as it is nothing is noted: scenarios run on rules that are all new.
fn note_reads(reads: &mut Reads, rule: &Candidate) {
    let Some(descriptor) = rule.descriptor() else { return };
    reads.labels.extend(rule.spec().labels.iter().map(|(name, _)| name.to_owned()));
    reads.labels.extend(descriptor.group_by.iter().map(ToString::to_string));
    for input in &descriptor.inputs {
        match &input.reads {
            watchfire_core::Reads::Metric { name, .. } => reads.metrics.insert(name.to_string()),
            watchfire_core::Reads::Event { kind, .. } => reads.kinds.insert(kind.to_string()),
        };
    }
}

impl Loader<'_> {
    fn start(
        &mut self,
        source: &TemplateSource,
        rule: &TemplateRule,
        errors: &mut Errors,
    ) -> Option<(Made, Candidate)> {
        let own = rule.limits.as_ref().map(|node| limits::changes(node, errors)).unwrap_or_default();
        let sandbox = self.sandbox.with_limits(own);
        let mut refuse = |refused: Refused| {
            let place = rule.limits.as_ref().filter(|_| refused.by_limits).map_or(&rule.module_place, Node::place);
            errors.add(place, format!("{}: {}", rule.spec.alert, refused.why));
        };
        let found = raw(source, rule.module.as_ref()?, &rule.spec.alert, self.store);
        let raw = found.map_err(|why| refuse(why.into())).ok()?;
        let identity = format!("{} {:?}", raw.identity(), sandbox.changes());
        let mut made =
            Made { spec: rule.spec.clone(), settings: rule.settings.clone(), module: identity, memory_bytes: 0 };
        if let Some(known) = self.known.get(&*rule.spec.id).filter(|known| known.is_as(&made)) {
            made.memory_bytes = known.memory_bytes;
            self.admit(made.memory_bytes).map_err(|why| refuse(why.into())).ok()?;
            return Some((made, Candidate::Same(rule.spec.clone())));
        }
        let module = self.module(&sandbox, raw, &made.module).map_err(&mut refuse).ok()?;
        made.memory_bytes = module.memory_bytes();
        self.admit(made.memory_bytes).map_err(|why| refuse(why.into())).ok()?;
        if let Err(problems) = module.validate(&rule.settings) {
            problems.iter().for_each(|problem| refuse_setting(rule, problem, errors));
            return None;
        }
        let mut refuse = |why: String| errors.add(&rule.place, format!("{}: {why}", rule.spec.alert));
        let program = module.start(&rule.settings).map_err(|why| refuse(why.to_string())).ok()?;
        check_rule(&rule.spec, &*program).map_err(|why| refuse(why.to_string())).ok()?;
        Some((made, Candidate::New(rule.spec.clone(), program)))
    }

    fn module(&mut self, sandbox: &Sandbox, raw: Raw, identity: &str) -> Result<Rc<Module>, Refused> {
        if let Some(known) = self.modules.get(identity) {
            return Ok(known.clone());
        }
        let named = |file: &str, error: LoadError| {
            let refused = Refused::from(error);
            let why = if refused.by_limits { refused.why } else { format!("module {file}: {}", refused.why) };
            Refused { why, ..refused }
        };
        let module = Rc::new(match raw {
            Raw::Expression(spec) => return Ok(sandbox.expression(*spec).map(Rc::new)?),
            Raw::Wasm(file, bytes) => sandbox.wasm(&file, &bytes).map_err(|error| named(&file, error))?,
            Raw::Rhai(file, text) => sandbox.rhai(&file, &file, &text)?,
        });
        self.modules.insert(identity.to_owned(), module.clone());
        Ok(module)
    }

    /// Whether the memory of one more rule fits beside that of the others.
    fn admit(&mut self, bytes: u64) -> Result<(), String> {
        let (wanted, total) = (self.memory_bytes.saturating_add(bytes), self.sandbox.total_memory_bytes());
        if wanted > total {
            return Err(format!(
                "with it the rules may use {} of {} bytes of memory; lower limits.memory_bytes of some, or raise limits.total_memory_bytes, see docs/limits.md",
                grouped(wanted),
                grouped(total)
            ));
        }
        self.memory_bytes = wanted;
        Ok(())
    }
}

impl Raw {
    /// The same for the same module.
    fn identity(&self) -> String {
        match self {
            Raw::Expression(spec) => format!("{spec:?}"),
            Raw::Wasm(_, bytes) => format!("wasm {}", hex(bytes)),
            // A script's name is shown in its errors.
            Raw::Rhai(file, text) => format!("rhai {file} {}", hex(text.as_bytes())),
        }
    }
}

/// The module that a template names, as it lies there.
fn raw(source: &TemplateSource, module: &ModuleRef, alert: &str, store: Option<&ModuleStore>) -> Result<Raw, String> {
    let beside = |path: &str| source.beside(path).map_err(|why| format!("module {path}: {why}"));
    match module {
        ModuleRef::Expression { when, until, value, severity, scope, parameters } => {
            Ok(Raw::Expression(Box::new(ExpressionSpec {
                name: alert.to_owned(),
                when: when.clone(),
                until: until.clone(),
                value: value.clone(),
                severity: *severity,
                scope: *scope,
                parameters: parameters.clone(),
            })))
        }
        ModuleRef::Shipped(name) => {
            let bytes = watchfire_rules::module(name).ok_or_else(|| format!("there is no module `{name}`"))?;
            Ok(Raw::Wasm(name.clone(), bytes.to_vec()))
        }
        ModuleRef::Oci(reference) => Ok(Raw::Wasm(reference.clone(), stored(reference, store)?)),
        ModuleRef::Wasm(path) => beside(path).map(|(file, bytes)| Raw::Wasm(file, bytes)),
        ModuleRef::Rhai(path) => {
            let (file, bytes) = beside(path)?;
            let text = String::from_utf8(bytes).map_err(|_| format!("module {path}: it is no UTF-8 text"))?;
            Ok(Raw::Rhai(file, text))
        }
    }
}

/// The bytes of a module of a registry, checked against its digest.
pub(crate) fn stored(reference: &str, store: Option<&ModuleStore>) -> Result<Vec<u8>, String> {
    let store = store.ok_or_else(|| {
        format!("module {reference}: no folder of modules is given; write `templates: {{modules: FOLDER}}`")
    })?;
    store.read(reference)
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
        self.rules.retain(|rule| names.contains(&&*rule.spec().template));
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
