//! How an engine is put together.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use watchfire_core::Labels;
use watchfire_core::route::{Route, RouteTree};
use watchfire_door::Errors;
use watchfire_notify::courier::Options;
use watchfire_notify::heartbeat::HeartbeatConfig;
use watchfire_notify::{BuildContext, Courier, Db, ReceiverConfig, Receivers};
use watchfire_sandbox::{Limits, Policy, Sandbox, SandboxConfig};

use crate::catalog::{Catalog, Given, Selection, TemplateSource};
use crate::engine::{Engine, Parts};
use crate::load;
use crate::lock::StorageLock;
use crate::module_store::ModuleStore;
use crate::store;

/// Why an engine cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Templates are wrong; all that is wrong is told.
    #[error("{0}")]
    Templates(Errors),
    /// A template's path cannot be read.
    #[error("templates at {path}: {why}")]
    Path {
        /// The path.
        path: PathBuf,
        /// Why.
        why: std::io::Error,
    },
    /// No such shipped template.
    #[error("Watchfire ships no template {found:?}; it ships {known}")]
    Shipped {
        /// What was asked for.
        found: String,
        /// What there is.
        known: String,
    },
    /// The rules do not fit together.
    #[error(transparent)]
    Rules(#[from] watchfire_core::LoadError),
    /// A route names a receiver that is not there.
    #[error("a route leads to receiver {found:?}, which is not there; the receivers are {known}")]
    Receiver {
        /// What was named.
        found: String,
        /// What there is.
        known: String,
    },
    /// The storage, the sandbox or the delivery cannot be set up.
    #[error("{0}")]
    SetUp(String),
}

/// Puts an engine together.
#[derive(Default)]
pub struct Builder {
    sources: Vec<TemplateSource>,
    problems: Vec<BuildError>,
    given: Given,
    host: Option<Labels>,
    limits: Limits,
    policy: Policy,
    cache_dir: Option<PathBuf>,
    signal_handlers: bool,
    storage: Option<PathBuf>,
    routes: Option<RouteTree>,
    receivers: Option<Vec<ReceiverConfig>>,
    heartbeats: Vec<HeartbeatConfig>,
    external_url: String,
    lenient: bool,
    only: Vec<String>,
    recording: Option<String>,
    shadow: Vec<TemplateSource>,
    store: Option<ModuleStore>,
}

impl Builder {
    /// Adds templates: a file, or a folder with any number of them below.
    pub fn templates(mut self, path: impl AsRef<Path>) -> Self {
        match load::at(path.as_ref()) {
            Ok(sources) => self.sources.extend(sources),
            Err(why) => self.problems.push(BuildError::Path { path: path.as_ref().to_owned(), why }),
        }
        self
    }

    /// Adds a template by its text; `name` stands for its file in messages, and modules are found from the working
    /// directory.
    pub fn template_text(mut self, name: &str, text: &str) -> Self {
        self.sources.push(TemplateSource::Text(name.to_owned(), text.to_owned()));
        self
    }

    /// Adds templates that were found already.
    pub fn sources(mut self, sources: impl IntoIterator<Item = TemplateSource>) -> Self {
        self.sources.extend(sources);
        self
    }

    /// Adds templates that Watchfire ships, by name; all of them if none is named.
    pub fn shipped_templates(mut self, names: &[&str]) -> Self {
        let all = load::shipped();
        let name = |source: &TemplateSource| match source {
            TemplateSource::Shipped(template) => template.name,
            _ => "",
        };
        for wanted in names.iter().filter(|wanted| !all.iter().any(|source| name(source) == **wanted)) {
            let known = all.iter().map(name).collect::<Vec<_>>().join(", ");
            self.problems.push(BuildError::Shipped { found: (*wanted).to_owned(), known });
        }
        self.sources.extend(all.into_iter().filter(|source| names.is_empty() || names.contains(&name(source))));
        self
    }

    /// The values of templates' parameters, by template.
    pub fn parameters(mut self, given: Given) -> Self {
        self.given = given;
        self
    }

    /// Leaves out templates whose `applies_to` does not match these labels and facts.
    pub fn host(mut self, facts: Labels) -> Self {
        self.host = Some(facts);
        self
    }

    /// Runs only these alerts.
    pub fn only(mut self, alerts: &[String]) -> Self {
        self.only = alerts.to_vec();
        self
    }

    /// Other limits for rules.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Other limits for large modules, and how far templates may raise limits of their own rules.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Keeps compiled rules in a folder, so that the next start is faster.
    pub fn cache_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache_dir = Some(folder.into());
        self
    }

    /// Allows wasmtime its signal handlers (SIGSEGV, SIGILL, SIGFPE): memory-heavy rules run faster.
    pub fn signal_handlers(mut self, allowed: bool) -> Self {
        self.signal_handlers = allowed;
        self
    }

    /// Keeps alerts and messages in this SQLite file, so that a restart neither loses nor repeats one.
    pub fn storage(mut self, file: impl Into<PathBuf>) -> Self {
        self.storage = Some(file.into());
        self
    }

    /// Where modules of registries lie, which templates name by digest.
    pub fn module_store(mut self, store: ModuleStore) -> Self {
        self.store = Some(store);
        self
    }

    /// Runs these templates beside those of the same name, on the same samples: they tell nobody and have no alerts, and
    /// what they would have done otherwise is in [`crate::Status::shadow`].
    pub fn shadow(mut self, sources: impl IntoIterator<Item = TemplateSource>) -> Self {
        self.shadow.extend(sources);
        self
    }

    /// What is read is the recording of this name rather than this host as it lives: what is stored is then a whole
    /// picture of one moment of it, from which a restart goes on exactly (see [`Engine::position`]).
    pub fn recording(mut self, name: &str) -> Self {
        self.recording = Some(name.to_owned());
        self
    }

    /// Which receivers alerts go to; everything to the first receiver if not given.
    pub fn routes(mut self, root: Route) -> Self {
        self.routes = Some(RouteTree::new(root));
        self
    }

    /// Lets the engine deliver to these receivers, on a thread of its own.
    pub fn receivers(mut self, receivers: Vec<ReceiverConfig>) -> Self {
        self.receivers = Some(receivers);
        self
    }

    /// Signs of life to dead man's switches.
    pub fn heartbeats(mut self, heartbeats: Vec<HeartbeatConfig>) -> Self {
        self.heartbeats = heartbeats;
        self
    }

    /// The address that messages give for this Watchfire.
    pub fn external_url(mut self, url: &str) -> Self {
        self.external_url = url.to_owned();
        self
    }

    /// Runs the good templates where others are broken, which then fire `WatchfireTemplateInvalid`: one bad template
    /// never leaves a host blind.
    pub fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }

    /// Builds the engine. Nothing is sent or written before all was found good.
    ///
    /// # Errors
    /// The first thing that is wrong; of templates, all.
    pub fn build(self) -> Result<Engine, BuildError> {
        self.build_seeing(&mut |_| Ok(()))
    }

    /// As [`Builder::build`], where the catalogue is looked at, and may be refused, before anything is started.
    pub(crate) fn build_seeing(
        mut self,
        look: &mut dyn FnMut(&Catalog) -> Result<(), BuildError>,
    ) -> Result<Engine, BuildError> {
        if !self.problems.is_empty() {
            return Err(self.problems.remove(0));
        }
        let sandbox = self.sandbox()?;
        let catalog = self.catalog(&sandbox)?;
        look(&catalog)?;
        let shadow = self.shadow_catalog(&sandbox)?;
        let names: Vec<String> = self.receivers.iter().flatten().map(|receiver| receiver.name.clone()).collect();
        let routes =
            self.routes.take().unwrap_or_else(|| RouteTree::to(names.first().map_or("default", String::as_str)));
        if self.receivers.is_some() {
            check_receivers(&routes, &names)?;
        }
        let lock = self.storage.as_deref().map(StorageLock::take).transpose().map_err(BuildError::SetUp)?;
        let db = self.open_storage()?;
        let courier = self.start_courier(db.as_ref())?;
        let (receivers, courier) = courier.unzip();
        let selection = self.selection();
        let (durable, is_recording) = (self.storage.is_some(), self.recording.is_some());
        let store = self.store.take();
        let parts = Parts { sandbox, store, routes, db, durable, lock, is_recording, receivers, courier, selection };
        Engine::assemble(parts, catalog, shadow)
    }

    /// Reads the templates and says all that is wrong, without building anything.
    ///
    /// # Errors
    /// As [`Builder::build`], as far as templates go.
    pub fn check(mut self) -> Result<Catalog, BuildError> {
        if !self.problems.is_empty() {
            return Err(self.problems.remove(0));
        }
        let sandbox = self.sandbox()?;
        self.shadow_catalog(&sandbox)?;
        self.catalog(&sandbox)
    }

    fn shadow_catalog(&self, sandbox: &Sandbox) -> Result<Option<Catalog>, BuildError> {
        if self.shadow.is_empty() {
            return Ok(None);
        }
        let mut catalog = Catalog::read(&self.shadow, &self.given, sandbox, self.store.as_ref());
        if !catalog.broken.is_empty() {
            if !self.lenient {
                return Err(BuildError::Templates(catalog.errors()));
            }
            tracing::error!("templates do not run in shadow:\n{}", catalog.errors());
        }
        catalog.select(&self.selection());
        Ok(Some(catalog))
    }

    fn sandbox(&mut self) -> Result<Sandbox, BuildError> {
        let config = SandboxConfig {
            limits: self.limits.clone(),
            policy: self.policy.clone(),
            cache_dir: self.cache_dir.take(),
            signal_handlers: self.signal_handlers,
            ..SandboxConfig::default()
        };
        Sandbox::new(config).map_err(|error| BuildError::SetUp(error.to_string()))
    }

    /// The catalogue of all templates that this host is for.
    pub(crate) fn catalog(&self, sandbox: &Sandbox) -> Result<Catalog, BuildError> {
        let mut catalog = Catalog::read(&self.sources, &self.given, sandbox, self.store.as_ref());
        if !catalog.broken.is_empty() && !self.lenient {
            return Err(BuildError::Templates(catalog.errors()));
        }
        catalog.select(&self.selection());
        Ok(catalog)
    }

    fn selection(&self) -> Selection {
        Selection { host: self.host.clone(), only: self.only.clone() }
    }

    fn open_storage(&self) -> Result<Option<Db>, BuildError> {
        let said = |why: String| BuildError::SetUp(why);
        let db = match &self.storage {
            Some(path) => {
                let (db, opened) = Db::open(path).map_err(|error| said(error.to_string()))?;
                if let Some(aside) = opened.set_aside {
                    tracing::error!(aside = %aside.display(), "the stored alerts were damaged; they were set aside, and Watchfire starts without them");
                }
                db
            }
            None if self.receivers.is_some() => Db::memory().map_err(|error| said(error.to_string()))?,
            None => return Ok(None),
        };
        self.set_up_storage(&db).map_err(said)?;
        Ok(Some(db))
    }

    fn set_up_storage(&self, db: &Db) -> Result<(), String> {
        let place = self.storage.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        let mut connection = db.lock();
        let set_up = store::migrate(&mut connection);
        let set_up = set_up.and_then(|()| store::take_for(&connection, self.recording.as_deref()));
        set_up.map_err(|why| format!("the storage {place} cannot be used: {why}"))
    }

    fn start_courier(
        &mut self,
        db: Option<&Db>,
    ) -> Result<Option<(Arc<Receivers>, watchfire_notify::CourierHandle)>, BuildError> {
        let (Some(configs), Some(db)) = (self.receivers.take(), db) else { return Ok(None) };
        let context = BuildContext::new(self.external_url.clone());
        let said = |why: String| BuildError::SetUp(why);
        let receivers = Receivers::build(&configs, &context).map_err(|error| said(error.to_string()))?;
        let options = Options { heartbeats: std::mem::take(&mut self.heartbeats), ..Options::default() };
        let handle = Courier::start(db.clone(), receivers.clone(), &context, options);
        Ok(Some((receivers, handle.map_err(|error| said(error.to_string()))?)))
    }
}

pub(crate) fn check_receivers(routes: &RouteTree, names: &[String]) -> Result<(), BuildError> {
    let missing = routes.receivers().into_iter().find(|wanted| !names.iter().any(|name| name.as_str() == &**wanted));
    missing.map_or(Ok(()), |found| Err(BuildError::Receiver { found: found.to_string(), known: names.join(", ") }))
}
