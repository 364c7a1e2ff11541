//! The pages of the book do what they say: their files are written, their commands run, their output compared.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use regex::Regex;

/// One fenced block: its language and its text.
struct Block<'a> {
    language: &'a str,
    text: &'a str,
}

fn page(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)).unwrap()
}

fn blocks<'a>(page: &'a str) -> Vec<Block<'a>> {
    let fence = Regex::new(r"(?ms)^```(\S*)\n(.*?)^```$").unwrap();
    let block = |found: regex::Captures<'a>| {
        let part = |at| found.get(at).map_or("", |part| part.as_str());
        Block { language: part(1), text: part(2) }
    };
    fence.captures_iter(page).map(block).collect()
}

/// The file that a block is: its first line names it in a comment.
fn file<'a>(block: &Block<'a>) -> Option<(&'a str, &'a str)> {
    let (first, rest) = block.text.split_once('\n')?;
    let name = first.strip_prefix("# ").or_else(|| first.strip_prefix("// "))?;
    (block.language != "sh" && name.contains('.') && !name.contains(' ')).then_some((name, rest))
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn each_recipe_of_the_cookbook_passes_its_scenarios() {
    let page = page("cookbook.md");
    let recipes: Vec<&str> = page.split("\n## ").skip(1).collect();
    assert_eq!(recipes.len(), 12);
    for recipe in recipes {
        let folder = tempfile::tempdir().unwrap();
        blocks(recipe).iter().filter_map(file).for_each(|(name, text)| write(folder.path(), name, text));
        let output = Command::new(env!("CARGO_BIN_EXE_watchfire")).arg("test").arg(folder.path()).output().unwrap();
        let said = text(&output);
        assert!(said.ends_with("2 passed, 0 failed\n"), "{}\n{said}", recipe.lines().next().unwrap());
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A line between the output of two steps.
const MARK: &str = "=== next step\n";

/// A page as one shell script: files are written where they stand, commands are run, the first failure ends it.
fn script(blocks: &[Block<'_>]) -> String {
    let mut script = "set -e; exec 2>&1\n".to_owned();
    for block in blocks {
        match (block.language, file(block)) {
            ("sh", _) => script += &format!("{}printf '{MARK}'\n", block.text),
            (_, Some((name, text))) => {
                script +=
                    &format!("mkdir -p \"$(dirname '{name}')\"; cat > '{name}' <<'END OF FILE'\n{text}END OF FILE\n");
            }
            _ => {}
        }
    }
    script
}

/// Whether an output is what a page says: `...` alone on a line stands for any lines, `[..]` for any text.
fn says(expected: &str, got: &str) -> bool {
    let line = |line: &str| match line {
        "..." => "(?:.*\n)*?".to_owned(),
        line => line.split("[..]").map(regex::escape).collect::<Vec<_>>().join(".*") + "\n",
    };
    let pattern: String = expected.lines().map(line).collect();
    Regex::new(&format!("^{pattern}$")).unwrap().is_match(got)
}

/// The commands that a page needs, from a comment such as `<!-- needs: cargo -->`.
fn lacks(page: &str) -> Option<&str> {
    let needs = page.split("<!-- needs: ").nth(1)?.split(" -->").next()?;
    needs.split(' ').find(|tool| !Command::new("which").arg(tool).output().is_ok_and(|found| found.status.success()))
}

/// Runs a tutorial step by step.
fn follow(name: &str) {
    let page = page(name);
    if let Some(tool) = lacks(&page) {
        println!("skipped: {name} needs {tool}, which is not on this machine");
        return;
    }
    let blocks = blocks(&page);
    let folder = tempfile::tempdir().unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_watchfire")).parent().unwrap().display().to_string();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
    let output =
        Command::new("sh").args(["-c", &script(&blocks)]).current_dir(folder.path()).env("PATH", path).output();
    let said = text(&output.unwrap());
    let mut outputs = said.split(MARK);
    for (at, block) in blocks.iter().enumerate().filter(|(_, block)| block.language == "sh") {
        let got = outputs.next().unwrap_or_default();
        if let Some(expected) = blocks.get(at + 1).filter(|next| next.language == "text") {
            assert!(
                says(expected.text, got),
                "{name}: after\n{}it says\n{got}in place of\n{}",
                block.text,
                expected.text
            );
        }
    }
    assert!(outputs.next().is_some_and(|rest| rest.is_empty()), "{name}: it ended early:\n{said}");
}

#[test]
fn a_template_in_five_minutes() {
    follow("tutorial/template.md");
}

#[test]
fn a_rule_in_rhai() {
    follow("tutorial/rhai.md");
}

#[test]
fn a_rule_in_rust() {
    follow("tutorial/rust.md");
}

#[test]
fn a_page_that_is_wrong_is_seen() {
    assert!(says("a [..] c\n...\nz\n", "a b c\n1\n2\nz\n"));
    assert!(!says("a\n", "a\nb\n"));
    let blocks = blocks("```sh\nfalse\n```\n```yaml\n# x/y.yaml\nk: v\n```\n");
    assert_eq!(file(&blocks[1]), Some(("x/y.yaml", "k: v\n")));
    assert!(script(&blocks).contains("false\n"));
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn each_page_of_the_book_is_in_its_summary() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let summary = page("SUMMARY.md");
    for path in files(&docs) {
        let name = path.strip_prefix(&docs).unwrap().display().to_string();
        let wanted = name.ends_with(".md") && name != "SUMMARY.md";
        assert!(!wanted || summary.contains(&format!("({name})")), "{name} is not in docs/SUMMARY.md");
    }
}
