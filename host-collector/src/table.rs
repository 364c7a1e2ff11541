//! Small data files: comma-separated, with `#` comments, blank lines, a byte-order mark or CRLF where an editor
//! left them. Every mistake is told with file and line.

/// A mistake in a data file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct TableError {
    /// The file's name.
    pub file: String,
    /// Its line, from 1.
    pub line: u64,
    /// What is wrong.
    pub message: String,
}

/// One row: where it stands and as many cells as there are columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub line: u64,
    pub cells: Vec<String>,
}

impl Row {
    /// An error about this row.
    pub fn error(&self, file: &str, message: impl Into<String>) -> TableError {
        TableError { file: file.to_owned(), line: self.line, message: message.into() }
    }
}

/// The rows of a table with `columns` columns. Surplus commas belong to the last column, so that a help text may
/// hold them; missing cells at the end are empty, but a row needs `needed` of them.
pub(crate) fn rows(file: &str, text: &str, columns: usize, needed: usize) -> Result<Vec<Row>, TableError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut rows = Vec::new();
    // Line by line: the csv reader's own positions do not count the comments that it skips.
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let record = record(text).map_err(|message| TableError { file: file.to_owned(), line, message })?;
        let row = Row { line, cells: cells(&record, columns) };
        if record.len() < needed {
            return Err(row.error(file, format!("found {} columns, expected at least {needed}", record.len())));
        }
        rows.push(row);
    }
    Ok(rows)
}

fn record(line: &str) -> Result<csv::StringRecord, String> {
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).trim(csv::Trim::All).from_reader(line.as_bytes());
    let record = reader.records().next().transpose().map_err(|error| error.to_string())?;
    Ok(record.unwrap_or_default())
}

fn cells(record: &csv::StringRecord, columns: usize) -> Vec<String> {
    let mut cells: Vec<String> = record.iter().take(columns).map(str::to_owned).collect();
    cells.resize(columns, String::new());
    if let Some(last) = cells.last_mut() {
        for surplus in record.iter().skip(columns) {
            last.push_str(", ");
            last.push_str(surplus);
        }
    }
    cells
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn comments_marks_line_ends_and_commas_are_tolerated() {
        let text = "\u{feff}# a comment, with a comma\r\n\r\na,b,help, and more\r\n   # indented, too\r\n  c , d\r\n";
        let rows = rows("t.csv", text, 3, 2).unwrap();
        let cells: Vec<_> = rows.iter().map(|row| (row.line, row.cells.join("|"))).collect();
        assert_eq!(cells, [(3, "a|b|help, and more".to_owned()), (5, "c|d|".to_owned())]);
    }

    #[test]
    fn a_short_row_is_told_with_its_line() {
        let error = rows("t.csv", "a,b\n# x\nc\n", 3, 2).unwrap_err();
        assert_eq!(error.to_string(), "t.csv:3: found 1 columns, expected at least 2");
    }
}
