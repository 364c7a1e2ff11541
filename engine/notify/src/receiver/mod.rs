//! Receivers: one file for each kind, one trait, one list line.

pub mod alertmanager;
pub mod email;
pub(crate) mod read;
mod read_email;
pub mod webhook;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use watchfire_core::Severity;
use watchfire_door::{Errors, Node};

use crate::clock::{self, Clock};
use crate::mail::account::Accounts;
use crate::message::Message;
use crate::tls::Roots;
use crate::verdict::Verdict;

/// The most channels of one receiver.
pub const CHANNELS_MAX: usize = 64;

/// Every kind of channel: its key in a receiver, and how its entries are read. A new kind is one file and one line here.
const KINDS: &[Kind] = &[
    Kind { key: "webhook_configs", read: |node, errors| boxed(webhook::WebhookConfig::read(node, errors)) },
    Kind { key: "email_configs", read: |node, errors| boxed(email::EmailConfig::read(node, errors)) },
    Kind {
        key: "alertmanager_configs",
        read: |node, errors| boxed(alertmanager::AlertmanagerConfig::read(node, errors)),
    },
];

struct Kind {
    key: &'static str,
    read: fn(&Node, &mut Errors) -> Option<Box<dyn ChannelConfig>>,
}

fn boxed<C: ChannelConfig + 'static>(config: Option<C>) -> Option<Box<dyn ChannelConfig>> {
    Some(Box::new(config?))
}

/// The settings of one entry of a `…_configs` list.
pub trait ChannelConfig: Send + Sync + std::fmt::Debug {
    /// The word that its channels' names begin with.
    fn kind(&self) -> &'static str;

    /// Its channels: what is delivered, retried and counted on its own. Most kinds have one; email has one for
    /// each recipient, so that a refused recipient never costs another a second copy.
    ///
    /// # Errors
    /// A file that the settings name cannot be used.
    fn channels(&self, context: &BuildContext) -> Result<Vec<Channel>, BuildError>;
}

/// One way to one receiver.
pub struct Channel {
    /// What tells it from others of the same entry; empty for the only one.
    pub suffix: String,
    /// Whether it is told of ends.
    pub send_resolved: bool,
    /// What carries messages.
    pub sender: Box<dyn Sender>,
}

/// What carries messages to one place.
pub trait Sender: Send + Sync {
    /// Tries once. Must end within a minute or so whatever the other side does; dropping the future ends the try.
    fn send<'a>(&'a self, delivery: Delivery<'a>) -> SendFuture<'a>;
}

/// A try under way.
pub type SendFuture<'a> = Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;

/// One message to be delivered.
#[derive(Clone, Copy)]
pub struct Delivery<'a> {
    /// What to say; for a channel without `send_resolved` only what fires.
    pub message: &'a Message,
    /// How many tries there were before.
    pub attempt: u32,
    /// For each alert the severity at which this channel was last told that it fires.
    pub told: &'a [Option<Severity>],
}

/// What building channels needs beside their settings.
#[derive(Clone)]
pub struct BuildContext {
    /// The URL at which people reach Watchfire; may be empty.
    pub external_url: String,
    /// What time it is.
    pub now: Clock,
    /// Trusted certificate authorities.
    pub roots: Roots,
    /// Mail accounts, shared by channels that log in as the same user.
    pub(crate) accounts: Accounts,
}

impl BuildContext {
    /// The system's clock and certificate authorities.
    pub fn new(external_url: impl Into<String>) -> Self {
        let (now, roots) = (clock::system(), Roots::system());
        BuildContext { external_url: external_url.into(), now, roots, accounts: Accounts::default() }
    }

    /// The same with another clock.
    pub fn with_clock(mut self, now: Clock) -> Self {
        self.now = now;
        self
    }
}

/// A receiver could not be made from its settings.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}{why}")]
pub struct BuildError {
    at: String,
    why: String,
}

impl BuildError {
    /// What is wrong.
    pub fn new(why: impl Into<String>) -> Self {
        BuildError { at: String::new(), why: why.into() }
    }

    fn at(mut self, receiver: &str, channel: &str) -> Self {
        self.at = format!("receiver {receiver:?}, {channel}: ");
        self
    }
}

/// The settings of one receiver: a name and its channels' entries.
#[derive(Debug, Default)]
pub struct ReceiverConfig {
    /// The name that routes use.
    pub name: String,
    entries: Vec<Box<dyn ChannelConfig>>,
}

impl ReceiverConfig {
    /// A receiver without channels: it takes messages and tells nobody.
    pub fn new(name: impl Into<String>) -> Self {
        ReceiverConfig { name: name.into(), entries: Vec::new() }
    }

    /// Adds an entry.
    pub fn with(mut self, entry: impl ChannelConfig + 'static) -> Self {
        self.entries.push(Box::new(entry));
        self
    }

    /// Reads `{name, webhook_configs, email_configs, …}`. `None` if anything in it is wrong; `errors` says what.
    pub fn read(node: &Node, errors: &mut Errors) -> Option<Self> {
        let mut map = node.map(errors)?;
        let name = map.require("name", errors).and_then(|node| node.word(errors));
        let entries: Vec<Option<_>> = KINDS
            .iter()
            .flat_map(|kind| {
                let list = map.take(kind.key).and_then(|node| node.list(errors)).unwrap_or_default();
                list.iter().map(|entry| (kind.read)(entry, errors)).collect::<Vec<_>>()
            })
            .collect();
        map.finish(errors);
        Some(ReceiverConfig { name: name?, entries: entries.into_iter().collect::<Option<_>>()? })
    }
}

/// One receiver, ready to be told.
pub struct Receiver {
    /// The name that routes use.
    pub name: String,
    channels: Vec<(String, Channel)>,
}

/// All receivers, ready to be told.
#[derive(Default)]
pub struct Receivers(Vec<Receiver>);

impl Receivers {
    /// Makes receivers from their settings. Nothing is sent.
    ///
    /// # Errors
    /// A file that the settings name cannot be used; a receiver has more than [`CHANNELS_MAX`] channels; two have
    /// the same name.
    pub fn build(configs: &[ReceiverConfig], context: &BuildContext) -> Result<Arc<Self>, BuildError> {
        let mut names = std::collections::HashSet::new();
        if let Some(twice) = configs.iter().find(|config| !names.insert(&config.name)) {
            return Err(BuildError::new(format!("two receivers have the name {:?}", twice.name)));
        }
        let receivers = configs.iter().map(|config| build_one(config, context)).collect::<Result<_, _>>()?;
        Ok(Arc::new(Receivers(receivers)))
    }

    /// The names of the receivers.
    pub fn receiver_names(&self) -> Vec<String> {
        self.0.iter().map(|receiver| receiver.name.clone()).collect()
    }

    /// The channels that a message is for, by name, to be handed to [`crate::outbox::enqueue`]. A channel without
    /// `send_resolved` is left out when nothing fires. Empty for an unknown receiver.
    pub fn targets(&self, message: &Message) -> Vec<String> {
        let channels = self.0.iter().filter(|receiver| receiver.name == message.receiver);
        channels
            .flat_map(|receiver| &receiver.channels)
            .filter(|(_, channel)| message.for_channel(channel.send_resolved).is_some())
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Receivers and channels by name.
    pub fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.iter().map(|(receiver, channel, _)| (receiver, channel))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str, &Channel)> {
        self.0
            .iter()
            .flat_map(|receiver| receiver.channels.iter().map(|(name, channel)| (&*receiver.name, &**name, channel)))
    }

    pub(crate) fn channel(&self, receiver: &str, name: &str) -> Option<&Channel> {
        self.iter().find(|(of, found, _)| (*of, *found) == (receiver, name)).map(|(.., channel)| channel)
    }
}

fn build_one(config: &ReceiverConfig, context: &BuildContext) -> Result<Receiver, BuildError> {
    let mut channels = Vec::new();
    let mut seen = std::collections::HashMap::<&str, usize>::new();
    for entry in &config.entries {
        let index = seen.entry(entry.kind()).or_default();
        let base = format!("{}/{index}", entry.kind());
        *index += 1;
        for channel in entry.channels(context).map_err(|error| error.at(&config.name, &base))? {
            let name = if channel.suffix.is_empty() { base.clone() } else { format!("{base}/{}", channel.suffix) };
            channels.push((name, channel));
        }
    }
    if channels.len() > CHANNELS_MAX {
        let why = format!("{} channels are more than {CHANNELS_MAX}; split the receiver", channels.len());
        return Err(BuildError::new(why).at(&config.name, "all"));
    }
    Ok(Receiver { name: config.name.clone(), channels })
}
