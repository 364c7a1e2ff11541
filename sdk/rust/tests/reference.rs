//! `docs/reference/contract.md` is what the contract says of itself. `UPDATE_EXPECT=1` writes it anew.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write as _;
use std::path::Path;

use wit_bindgen_core::wit_parser::{
    Docs, EnumCase, Function, Interface, Resolve, Type, TypeDef, TypeDefKind, World, WorldItem, WorldKey,
};

const INTRODUCTION: &str = "# The contract

What a rule and Watchfire say to each other, whatever language the rule is written in. This page is made from
[`sdk/wit/rule.wit`](../../sdk/wit/rule.wit); a published version never changes.

Durations are milliseconds, times are milliseconds since 1970. Lists of cells are column-major: the value of input `i` for
row `r` of `n` rows is at `i * n + r`.
";

fn contract() -> (Resolve, String) {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit")).unwrap();
    let name = resolve.packages[package].name.to_string();
    (resolve, name)
}

fn page() -> String {
    let (resolve, package) = contract();
    let mut page = format!("{INTRODUCTION}\nPackage `{package}`.\n");
    resolve.interfaces.iter().for_each(|(_, interface)| write_interface(&mut page, &resolve, interface));
    resolve.worlds.iter().for_each(|(_, world)| write_world(&mut page, &resolve, world));
    page.replace("\n\n\n", "\n\n").replace("  |", " |")
}

fn write_interface(page: &mut String, resolve: &Resolve, interface: &Interface) {
    writeln!(page, "\n## Interface `{}`\n\n{}", interface.name.as_deref().unwrap_or_default(), text(&interface.docs))
        .unwrap();
    for (name, id) in &interface.types {
        write_type(page, resolve, name, &resolve.types[*id]);
    }
    for function in interface.functions.values() {
        writeln!(page, "\n### `{}`\n\n{}", signature(resolve, function), text(&function.docs)).unwrap();
    }
}

fn write_type(page: &mut String, resolve: &Resolve, name: &str, definition: &TypeDef) {
    let of = |ty: &Type| type_text(resolve, ty);
    let rows: Vec<(&str, String, &Docs)> = match &definition.kind {
        TypeDefKind::Enum(cases) => return write_enum(page, name, &definition.docs, &cases.cases),
        TypeDefKind::Record(record) => {
            record.fields.iter().map(|field| (&*field.name, of(&field.ty), &field.docs)).collect()
        }
        TypeDefKind::Variant(variant) => {
            let payload = |ty: &Option<Type>| ty.as_ref().map(of).unwrap_or_default();
            variant.cases.iter().map(|case| (&*case.name, payload(&case.ty), &case.docs)).collect()
        }
        _ => return,
    };
    let kind = definition.kind.as_str();
    writeln!(page, "\n### {kind} `{name}`\n\n{}\n\n| name | type |\n| --- | --- |", text(&definition.docs)).unwrap();
    for (name, of, docs) in rows {
        let of = if of.is_empty() { of } else { format!("`{of}` ") };
        writeln!(page, "| `{name}` | {of}{} |", text(docs)).unwrap();
    }
}

fn write_enum(page: &mut String, name: &str, docs: &Docs, cases: &[EnumCase]) {
    let names: Vec<String> = cases.iter().map(|case| format!("`{}`", case.name)).collect();
    writeln!(page, "\n### enum `{name}`\n\n{} One of {}.", text(docs), names.join(", ")).unwrap();
}

fn write_world(page: &mut String, resolve: &Resolve, world: &World) {
    writeln!(page, "\n## World `{}`\n\n{}\n", world.name, text(&world.docs)).unwrap();
    let items =
        world.imports.iter().map(|item| ("import", item)).chain(world.exports.iter().map(|item| ("export", item)));
    for (way, (key, item)) in items {
        if let (WorldKey::Interface(id), WorldItem::Interface { .. }) = (key, item) {
            writeln!(page, "- {way} `{}`", resolve.interfaces[*id].name.as_deref().unwrap_or_default()).unwrap();
        }
    }
}

fn text(docs: &Docs) -> String {
    docs.contents.as_deref().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn signature(resolve: &Resolve, function: &Function) -> String {
    let parameter = |name: &str, ty: &Type| format!("{name}: {}", type_text(resolve, ty));
    let parameters: Vec<String> = function.params.iter().map(|param| parameter(&param.name, &param.ty)).collect();
    let result = function.result.as_ref().map(|ty| format!(" -> {}", type_text(resolve, ty))).unwrap_or_default();
    format!("{}({}){result}", function.name, parameters.join(", "))
}

fn type_text(resolve: &Resolve, ty: &Type) -> String {
    let Type::Id(id) = ty else { return plain(ty).to_owned() };
    let definition = &resolve.types[*id];
    if let Some(name) = &definition.name {
        return name.clone();
    }
    let of = |ty: &Type| type_text(resolve, ty);
    let or_nothing = |ty: &Option<Type>| ty.as_ref().map_or_else(|| "_".to_owned(), of);
    match &definition.kind {
        TypeDefKind::List(ty) => format!("list<{}>", of(ty)),
        TypeDefKind::Option(ty) => format!("option<{}>", of(ty)),
        TypeDefKind::Tuple(tuple) => format!("tuple<{}>", tuple.types.iter().map(of).collect::<Vec<_>>().join(", ")),
        TypeDefKind::Result(result) => format!("result<{}, {}>", or_nothing(&result.ok), or_nothing(&result.err)),
        other => other.as_str().to_owned(),
    }
}

fn plain(ty: &Type) -> &'static str {
    match ty {
        Type::Bool => "bool",
        Type::U8 => "u8",
        Type::U32 => "u32",
        Type::U64 => "u64",
        Type::S64 => "s64",
        Type::F64 => "f64",
        Type::String => "string",
        _ => "?",
    }
}

#[test]
fn the_reference_is_that_of_the_contract() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/contract.md");
    let expected = page();
    assert!(!expected.contains('?'), "a type has no words: {expected}");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&file, &expected).unwrap();
    }
    let shipped = std::fs::read_to_string(&file).unwrap();
    assert!(shipped == expected, "sdk/wit changed: run `UPDATE_EXPECT=1 cargo test -p watchfire-sdk --test reference`");
}
