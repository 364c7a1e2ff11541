//! The numbers that a rule keeps, put back after a restart or a reload, over versions of the rule.

use super::Judge;
use crate::labels::Labels;
use crate::record::{Migration, StateRecord};

/// What a module without an export `migrate-state` says.
const CANNOT: &str = "the module has no `migrate-state`";

impl Judge {
    /// Puts back the numbers that were kept for targets. Those of another version the rule may carry over to its own;
    /// else they start clean, which [`Judge::take_migration`] tells.
    pub fn restore_states(&mut self, records: &[&StateRecord]) {
        let descriptor = self.program.descriptor();
        let (version, slots) = (descriptor.state_version, descriptor.state_slots as usize);
        let fits = |record: &&StateRecord| record.version == version && record.slots.len() == slots;
        let (fitting, others): (Vec<&StateRecord>, Vec<&StateRecord>) = records.iter().copied().partition(fits);
        let migrated = if slots == 0 { Vec::new() } else { self.migrate(&others) };
        let own = fitting.iter().map(|record| (&record.key.target, record.slots.as_slice()));
        let all: Vec<(&Labels, &[f64])> =
            own.chain(migrated.iter().map(|(target, slots)| (*target, slots.as_slice()))).collect();
        let rows: Vec<Option<u32>> = all.iter().map(|(target, _)| self.row_kept(target, target)).collect();
        self.grow();
        self.lay_out_state();
        for ((_, numbers), row) in all.iter().zip(rows).filter_map(|(one, row)| Some((one, row? as usize))) {
            for (slot, value) in numbers.iter().enumerate() {
                self.state[slot * self.state_rows + row] = *value;
            }
        }
    }

    /// Asks the program to carry numbers of another version over; by target.
    fn migrate<'a>(&mut self, records: &[&'a StateRecord]) -> Vec<(&'a Labels, Vec<f64>)> {
        let Some(first) = records.first() else { return Vec::new() };
        // What was stored of one rule was stored at one moment, and so by one version of it.
        let same = |record: &&&StateRecord| record.version == first.version && record.slots.len() == first.slots.len();
        let records: Vec<&StateRecord> = records.iter().filter(same).copied().collect();
        let said = self.ask_to_migrate(&records);
        let lost = said.as_ref().err().cloned();
        let to = self.program.descriptor().state_version;
        self.migration = Some(Migration { from: first.version, to, rows: records.len(), lost });
        self.migration_told = false;
        let Ok(state) = said else { return Vec::new() };
        let slots = self.program.descriptor().state_slots as usize;
        let of_row = |row: usize| (0..slots).map(|slot| state[slot * records.len() + row]).collect();
        records.iter().enumerate().map(|(row, record)| (&record.key.target, of_row(row))).collect()
    }

    fn ask_to_migrate(&mut self, records: &[&StateRecord]) -> Result<Vec<f64>, String> {
        let (version, slots) = records.first().map_or((0, 0), |record| (record.version, record.slots.len()));
        let state: Vec<f64> =
            (0..slots).flat_map(|slot| records.iter().map(move |record| record.slots[slot])).collect();
        let asked =
            self.program.migrate_state(version, u32::try_from(slots).unwrap_or(u32::MAX), records.len(), &state);
        let answer = asked.map_err(|failure| format!("its migration {failure}"))?.ok_or(CANNOT)?;
        let expected = self.program.descriptor().state_slots as usize * records.len();
        if answer.len() != expected {
            return Err(format!("its migration gave {} numbers, expected {expected}", answer.len()));
        }
        match answer.iter().position(|value| !value.is_finite()) {
            Some(at) => Err(format!("its migration gave {} at [{at}], which is no finite number", answer[at])),
            None => Ok(answer),
        }
    }

    /// What became of the state of another version, since the rule was loaded.
    pub fn migration(&self) -> Option<&Migration> {
        self.migration.as_ref()
    }

    /// The same, once.
    pub fn take_migration(&mut self) -> Option<Migration> {
        if std::mem::replace(&mut self.migration_told, true) { None } else { self.migration.clone() }
    }
}
