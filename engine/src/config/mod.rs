//! The main configuration file: read once, wholly, into values that cannot be wrong.

pub(crate) mod limits;
mod recording;
mod route;
mod sources;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use watchfire_core::route::Route;
use watchfire_door::{Errors, Map, Node, nearest};
use watchfire_notify::ReceiverConfig;
use watchfire_notify::heartbeat::HeartbeatConfig;

use crate::catalog::{Given, TemplateSource};
use crate::load;
use crate::module_store::ModuleStore;
pub use limits::RuleLimits;
pub use recording::{RecordingSource, Speed};
pub use sources::{NvmlSource, ScrapeSource, Sources};

/// Where Watchfire listens unless told otherwise.
pub const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9177);

/// The main configuration.
#[derive(Debug)]
pub struct Config {
    /// Where to listen.
    pub listen: SocketAddr,
    /// What may be read from anywhere where `listen` is no loopback address.
    pub public: Vec<Public>,
    /// The SQLite file of alerts and messages.
    pub storage: Option<PathBuf>,
    /// The name of this host in labels; the system's own if none.
    pub host: Option<String>,
    /// The address that messages give for this Watchfire.
    pub external_url: Option<String>,
    /// What is read.
    pub sources: Sources,
    /// Where templates lie.
    pub templates: Vec<TemplateSource>,
    /// Templates that run in shadow of those of the same name.
    pub shadow: Vec<TemplateSource>,
    /// Where modules of registries lie.
    pub modules: Option<ModuleStore>,
    /// Whether they must be as the lock file says.
    pub locked: bool,
    /// The values of their parameters.
    pub given: Given,
    /// The root of the routes.
    pub route: Option<Route>,
    /// Who is told.
    pub receivers: Vec<ReceiverConfig>,
    /// Signs of life.
    pub heartbeats: Vec<HeartbeatConfig>,
    /// How far rules may go.
    pub limits: RuleLimits,
}

/// Something that may be read from anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Public {
    /// `/metrics`
    Metrics,
    /// `/-/healthy` and `/-/ready`
    Health,
}

impl Config {
    /// Reads a configuration file. Paths in it are relative to its folder. All that is wrong goes to `errors`; the
    /// configuration is only good where nothing was added.
    pub fn read(file: &Path, text: &str, errors: &mut Errors) -> Option<Self> {
        let folder = file.parent().unwrap_or(Path::new(".")).to_owned();
        let mut map = watchfire_door::read(&file.display().to_string(), text, errors)?.map(errors)?;
        let (listen, public) = http(map.take("http"), errors);
        let storage = storage(map.take("storage"), &folder, errors);
        let sources = Sources::read(map.take("sources"), &folder, errors);
        let Templates { sources: templates, shadow, modules, given, locked } =
            templates(map.take("templates"), &folder, errors);
        let receivers = receivers(map.take("receivers"), errors);
        let route = map.take("route").and_then(|node| route::read(&node, errors).map(|route| (node, route)));
        if let Some((node, route)) = &route {
            check_receivers(node, route, &receivers, errors);
        }
        let config = Config {
            listen,
            public,
            storage,
            host: map.take("host").and_then(|node| node.word(errors)),
            external_url: map.take("external_url").and_then(|node| node.word(errors)),
            sources,
            templates,
            shadow,
            modules,
            given,
            locked,
            route: route.map(|(_, route)| route),
            receivers,
            heartbeats: heartbeats(map.take("heartbeat"), errors),
            limits: limits::read(map.take("limits"), map.take("limits_max"), errors),
        };
        map.finish(errors);
        Some(config)
    }

    /// Whether a text looks like a main configuration rather than a template.
    pub fn is_one(text: &str) -> bool {
        let keys = ["http:", "storage:", "sources:", "templates:", "route:", "receivers:", "heartbeat:", "limits:"];
        text.lines().any(|line| keys.iter().any(|key| line.starts_with(key)))
    }
}

fn http(node: Option<Node>, errors: &mut Errors) -> (SocketAddr, Vec<Public>) {
    let Some(mut map) = node.as_ref().and_then(|node| node.map(errors)) else { return (LISTEN_DEFAULT, Vec::new()) };
    let public = map.take("public").and_then(|node| node.list(errors)).unwrap_or_default();
    let public: Vec<Public> = public.iter().filter_map(|node| node.parse_with(errors, public_word)).collect();
    let node = map.take("listen");
    let listen = node.as_ref().and_then(|node| node.parse_with(errors, address)).unwrap_or(LISTEN_DEFAULT);
    if let (Some(node), false, true) = (&node, listen.ip().is_loopback(), public.is_empty()) {
        let message = format!("{listen} can be reached from outside, and there is no authentication");
        let hint = "listen on 127.0.0.1, or open only what is harmless: public: [metrics, health]";
        errors.hint(node.place(), message, hint);
    }
    map.finish(errors);
    (listen, public)
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("{text:?} is no address; expected IP:PORT, such as 127.0.0.1:9177"))
}

fn public_word(word: &str) -> Result<Public, String> {
    match word {
        "metrics" => Ok(Public::Metrics),
        "health" => Ok(Public::Health),
        _ => Err(format!("{word:?} is none of metrics, health")),
    }
}

fn storage(node: Option<Node>, folder: &Path, errors: &mut Errors) -> Option<PathBuf> {
    let mut map = node?.map(errors)?;
    let path = map.require("path", errors).and_then(|node| node.word(errors));
    map.finish(errors);
    // A folder is what operators think of; the file in it is ours to name.
    path.map(|path| folder.join(path).join("watchfire.db"))
}

/// What stands below `templates`.
struct Templates {
    sources: Vec<TemplateSource>,
    shadow: Vec<TemplateSource>,
    modules: Option<ModuleStore>,
    given: Given,
    locked: bool,
}

fn templates(node: Option<Node>, folder: &Path, errors: &mut Errors) -> Templates {
    let Some(mut map) = node.as_ref().and_then(|node| node.map(errors)) else {
        return Templates {
            sources: load::shipped(),
            shadow: Vec::new(),
            modules: None,
            given: Given::new(),
            locked: false,
        };
    };
    let nodes = map.take("paths").and_then(|node| node.list(errors)).unwrap_or_default();
    let mut sources: Vec<TemplateSource> = nodes.iter().flat_map(|node| at(node, folder, errors)).collect();
    let shipped = map.take("shipped");
    sources.extend(match &shipped {
        Some(node) => named_shipped(node, errors),
        None if nodes.is_empty() => load::shipped(),
        None => Vec::new(),
    });
    let given = map.take("with").and_then(|node| node.map(errors)).map(Map::entries).unwrap_or_default();
    let given = given.into_iter().filter_map(|(template, _, node)| {
        let values = node.map(errors)?.entries();
        Some((template, values.into_iter().map(|(name, _, node)| (name, node)).collect()))
    });
    let given = given.collect();
    let locked = map.take("locked").and_then(|node| node.bool(errors)).unwrap_or(false);
    let modules = map.take("modules").and_then(|node| node.word(errors));
    let modules = modules.map(|path| ModuleStore::new(folder.join(path.trim_start_matches("./"))));
    let shadow = map.take("shadow").and_then(|node| node.list(errors)).unwrap_or_default();
    let shadow = shadow.iter().flat_map(|node| at(node, folder, errors)).collect();
    map.finish(errors);
    Templates { sources, shadow, modules, given, locked }
}

fn at(node: &Node, folder: &Path, errors: &mut Errors) -> Vec<TemplateSource> {
    let Some(path) = node.word(errors) else { return Vec::new() };
    match load::at(&folder.join(path.trim_start_matches("./"))) {
        Ok(sources) if sources.is_empty() => {
            errors.add(node.place(), format!("there is no template.yaml in {path} or below"));
            sources
        }
        Ok(sources) => sources,
        Err(error) => {
            errors.add(node.place(), format!("{path} cannot be read: {error}"));
            Vec::new()
        }
    }
}

fn named_shipped(node: &Node, errors: &mut Errors) -> Vec<TemplateSource> {
    let all = watchfire_rules::templates();
    let known = || all.iter().map(|template| template.name);
    let mut found = Vec::new();
    for node in node.list(errors).unwrap_or_default() {
        let Some(name) = node.word(errors) else { continue };
        match all.iter().find(|template| template.name == name) {
            Some(template) => found.push(TemplateSource::Shipped(*template)),
            None => {
                let message = format!(
                    "Watchfire ships no template `{name}`; it ships {}",
                    known().collect::<Vec<_>>().join(", ")
                );
                match nearest(&name, known()) {
                    Some(near) => errors.hint(node.place(), message, format!("did you mean `{near}`?")),
                    None => errors.add(node.place(), message),
                }
            }
        }
    }
    found
}

fn receivers(node: Option<Node>, errors: &mut Errors) -> Vec<ReceiverConfig> {
    let nodes = node.and_then(|node| node.list(errors)).unwrap_or_default();
    let mut receivers: Vec<ReceiverConfig> = Vec::new();
    for node in nodes {
        let Some(receiver) = ReceiverConfig::read(&node, errors) else { continue };
        if receivers.iter().any(|other| other.name == receiver.name) {
            errors.add(node.place(), format!("receiver `{}` is there twice; names must differ", receiver.name));
        }
        receivers.push(receiver);
    }
    receivers
}

fn check_receivers(node: &Node, root: &Route, receivers: &[ReceiverConfig], errors: &mut Errors) {
    let known: Vec<&str> = receivers.iter().map(|receiver| receiver.name.as_str()).collect();
    let mut open = vec![(root, String::new())];
    while let Some((route, path)) = open.pop() {
        if !known.contains(&&*route.receiver) {
            let place = node.place_of(&format!("{path}receiver"));
            let message = format!("there is no receiver `{}`; the receivers are {}", route.receiver, known.join(", "));
            match nearest(&route.receiver, known.iter().copied()) {
                Some(near) => errors.hint(&place, message, format!("did you mean `{near}`?")),
                None => errors.add(&place, message),
            }
        }
        let inner = |(at, route)| (route, format!("{path}routes[{at}]."));
        open.extend(route.routes.iter().enumerate().map(inner));
    }
}

fn heartbeats(node: Option<Node>, errors: &mut Errors) -> Vec<HeartbeatConfig> {
    let nodes = node.map(|node| node.one_or_more()).unwrap_or_default();
    nodes.iter().filter_map(|node| HeartbeatConfig::read(node, errors)).collect()
}
