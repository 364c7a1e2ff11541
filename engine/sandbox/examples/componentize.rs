//! Makes a component of a rule's core module: `componentize IN.wasm OUT.wasm`. Watchfire does the same by itself when
//! it loads a core module; this is for those who want the file.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [from, to] = args.as_slice() else { return Err("usage: componentize IN.wasm OUT.wasm".into()) };
    let component = watchfire_sandbox::componentize(&std::fs::read(from)?)?;
    std::fs::write(to, &component)?;
    println!("{to}: {} bytes", component.len());
    Ok(())
}
