//! Other templates in place of those that are loaded: read on any thread, swapped between two ticks.

use std::collections::HashMap;
use std::fmt;

use watchfire_core::engine::Reloaded;
use watchfire_core::{Event, Time};
use watchfire_sandbox::Sandbox;

use super::{Engine, invalid_template};
use crate::builder::BuildError;
use crate::catalog::{Catalog, Given, Made, Selection, TemplateSource};
use crate::module_store::ModuleStore;

/// Reads templates for an engine that runs, on whatever thread: compiling takes its time.
pub struct Reader {
    sandbox: Sandbox,
    store: Option<ModuleStore>,
    selection: Selection,
    made: HashMap<String, Made>,
    made_in_shadow: HashMap<String, Made>,
    generation: u64,
}

/// Templates that were read, to be handed to [`Engine::swap`].
pub struct Prepared {
    catalog: Catalog,
    shadow: Option<Catalog>,
    generation: u64,
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").field("rules", &self.catalog.rules.len()).finish_non_exhaustive()
    }
}

impl Reader {
    /// Reads templates, those in `shadow` as [`crate::Builder::shadow`] says. Rules that have not changed are not built
    /// again.
    ///
    /// # Errors
    /// All that is wrong.
    pub fn read(
        &self,
        sources: &[TemplateSource],
        shadow: &[TemplateSource],
        given: &Given,
    ) -> Result<Prepared, BuildError> {
        let read = |sources: &[TemplateSource], made: &HashMap<String, Made>| {
            Catalog::read_after(sources, given, &self.sandbox, self.store.as_ref(), made)
        };
        let mut catalog = read(sources, &self.made);
        let mut shadow = (!shadow.is_empty()).then(|| read(shadow, &self.made_in_shadow));
        let mut errors = catalog.errors();
        shadow.iter().for_each(|shadow| errors.extend(shadow.errors()));
        if !errors.is_empty() || !catalog.broken.is_empty() {
            return Err(BuildError::Templates(errors));
        }
        catalog.select(&self.selection);
        shadow.iter_mut().for_each(|shadow| shadow.select(&self.selection));
        Ok(Prepared { catalog, shadow, generation: self.generation })
    }
}

impl Engine {
    /// Puts other templates in place of those that are loaded. Rules that have not changed go on as if nothing had
    /// happened; those that keep their name keep their alerts; where anything is wrong, nothing is changed. Reads them
    /// on this thread: [`Engine::reader`] and [`Engine::swap`] do the same without keeping rules waiting.
    ///
    /// # Errors
    /// All that is wrong.
    pub fn reload(&mut self, now: Time, sources: &[TemplateSource], given: &Given) -> Result<Reloaded, BuildError> {
        self.reload_beside(now, sources, &[], given)
    }

    /// As [`Engine::reload`], with these templates in shadow (see [`crate::Builder::shadow`]); none where none is named.
    ///
    /// # Errors
    /// All that is wrong.
    pub fn reload_beside(
        &mut self,
        now: Time,
        sources: &[TemplateSource],
        shadow: &[TemplateSource],
        given: &Given,
    ) -> Result<Reloaded, BuildError> {
        self.begin(now);
        let prepared = self.reader().read(sources, shadow, given)?;
        self.swap(now, prepared)
    }

    /// What reads templates for this engine as it is now.
    pub fn reader(&self) -> Reader {
        Reader {
            sandbox: self.sandbox.clone(),
            store: self.store.clone(),
            selection: self.selection.clone(),
            made: self.made.clone(),
            made_in_shadow: self.shadow.as_ref().map(|shadow| shadow.made().clone()).unwrap_or_default(),
            generation: self.generation,
        }
    }

    /// Puts templates that were read in place of those that are loaded.
    ///
    /// # Errors
    /// The rules do not fit together, or others were loaded since the reader was made; then nothing is changed.
    pub fn swap(&mut self, now: Time, prepared: Prepared) -> Result<Reloaded, BuildError> {
        self.begin(now);
        let Prepared { mut catalog, shadow, generation } = prepared;
        if generation != self.generation {
            return Err(BuildError::SetUp("other templates were loaded meanwhile; reload again".to_owned()));
        }
        let rules = std::mem::take(&mut catalog.rules);
        self.core.check(&rules)?;
        self.check_shadow(shadow.as_ref())?;
        self.generation += 1;
        for (file, _) in std::mem::take(&mut self.broken) {
            self.core.step(now, Event::Condition(invalid_template(&file, None)), &mut self.effects);
        }
        let done = self.core.reload(now, rules, &mut self.effects)?;
        let told = self.outputs();
        self.told.extend(told);
        self.note_catalog(&catalog);
        self.set_shadow(now, shadow);
        Ok(done)
    }
}
