//! Today's figures against those of another day.

use std::path::Path;

use serde::Deserialize;

use super::measure::Measured;

#[derive(Deserialize)]
struct Saved {
    rows: Vec<Measured>,
}

/// What has grown by more than `tolerance` percent; times are never among it, since machines differ.
///
/// # Errors
/// Where the file cannot be read, or holds no figures for a number of rows.
pub fn grown(file: &Path, measured: &[Measured], tolerance: f64) -> Result<Vec<String>, String> {
    let said = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| said(&error))?;
    let saved: Saved = serde_json::from_str(&text).map_err(|error| said(&error))?;
    let mut grown = Vec::new();
    for now in measured {
        let before = saved.rows.iter().find(|before| before.rows == now.rows);
        let before = before.ok_or_else(|| said(&format!("there are no figures for {} rows", now.rows)))?;
        let pairs = [
            ("steps", before.steps, now.steps),
            ("bytes of memory", before.memory_bytes, now.memory_bytes),
            ("bytes of the answer", before.output_bytes, now.output_bytes),
        ];
        let more = pairs.iter().filter(|(_, before, now)| *now as f64 > *before as f64 * (1.0 + tolerance / 100.0));
        grown.extend(more.map(|(what, before, after)| {
            format!("with {} rows: {after} {what}, {before} before, more than {tolerance} % above", now.rows)
        }));
    }
    Ok(grown)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn measured(steps: u64) -> Measured {
        Measured {
            rows: 8,
            steps,
            steps_budget: 1,
            ns_per_row: 1.0,
            memory_bytes: 100,
            output_bytes: 0,
            output_budget: 1,
        }
    }

    #[test]
    fn only_what_grew_beyond_the_tolerance_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bench.json");
        std::fs::write(&file, serde_json::json!({"rows": [measured(1000)]}).to_string()).unwrap();
        assert!(grown(&file, &[measured(1050)], 5.0).unwrap().is_empty());
        assert!(grown(&file, &[measured(900)], 5.0).unwrap().is_empty());
        let told = grown(&file, &[measured(1051)], 5.0).unwrap();
        assert_eq!(told, ["with 8 rows: 1051 steps, 1000 before, more than 5 % above"]);
        let other = Measured { rows: 9, ..measured(1) };
        assert!(grown(&file, &[other], 5.0).unwrap_err().contains("no figures for 9 rows"));
    }
}
