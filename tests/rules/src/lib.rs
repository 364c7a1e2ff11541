//! Rule modules that misbehave, for tests.

#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "there are modules here, and no templates")]
pub(crate) struct ShippedTemplate {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
}

#[allow(dead_code, reason = "there are modules here, and no templates")]
mod shipped {
    use super::ShippedTemplate;
    include!(concat!(env!("OUT_DIR"), "/shipped.rs"));
}

/// The module with a name: a WebAssembly core module.
pub fn module(name: &str) -> Option<&'static [u8]> {
    shipped::MODULES.iter().find(|(found, _)| *found == name).map(|(_, bytes)| *bytes)
}
