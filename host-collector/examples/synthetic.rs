//! Writes the demo's recording to standard output.

use std::io::{self, Write as _};

fn main() -> io::Result<()> {
    let mut to = io::BufWriter::new(io::stdout().lock());
    watchfire_collector::synthetic::write(&mut to)?;
    to.flush()
}
