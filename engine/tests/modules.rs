//! Modules of registries, named by digest.
#![allow(clippy::unwrap_used, reason = "tests")]

use watchfire_engine::module_store::{MODULE_MEDIA_TYPE, ModuleStore, hex};
use watchfire_engine::{BuildError, Builder, Engine, Given, LockFile, TemplateSource};

fn template(module: &str) -> TemplateSource {
    let with = "{metric: gpu_temperature_celsius, above: {warning: 85}}";
    let text = format!("template: t\nversion: 1.0.0\nrules:\n  - {{alert: Hot, module: '{module}', with: {with}}}\n");
    TemplateSource::Text("t.yaml".into(), text)
}

fn why(builder: Builder) -> String {
    match builder.build() {
        Err(BuildError::Templates(errors)) => errors.to_string(),
        Err(other) => other.to_string(),
        Ok(_) => "it was built".to_owned(),
    }
}

#[test]
fn a_template_names_a_module_of_a_registry_by_its_digest() {
    let folder = tempfile::tempdir().unwrap();
    let store = ModuleStore::new(folder.path());
    let module = watchfire_rules::module("threshold").unwrap();
    let layer = format!(
        "{{\"mediaType\":\"{MODULE_MEDIA_TYPE}\",\"digest\":\"sha256:{}\",\"size\":{}}}",
        hex(module),
        module.len()
    );
    let manifest = format!("{{\"schemaVersion\":2,\"layers\":[{layer}]}}");
    let file = store.keep(manifest.as_bytes(), module).unwrap();
    let reference = format!("oci://registry.example.com/rules/threshold@sha256:{}", hex(manifest.as_bytes()));
    let source = template(&reference);
    let builder = || Engine::builder().sources([source.clone()]);
    builder().module_store(store.clone()).build().unwrap();
    let lock = LockFile::of(std::slice::from_ref(&source), &Given::new(), Some(&store)).unwrap();
    assert!(lock.text().contains(&reference) && lock.text().contains("\"kind\": \"oci\""), "{}", lock.text());

    let without = why(builder());
    assert!(without.contains("t.yaml:4:18") && without.contains("templates: {modules: FOLDER}"), "{without}");
    let unpinned = why(Engine::builder().sources([template("oci://registry.example.com/rules/threshold:1.0")]));
    assert!(unpinned.contains("is not pinned") && unpinned.contains("watchfire pull"), "{unpinned}");
    std::fs::write(file, "something else").unwrap();
    let changed = why(builder().module_store(store));
    assert!(changed.contains("is not the one that its manifest names"), "{changed}");
}
