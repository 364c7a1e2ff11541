//! `watchfire demo`

use std::time::Duration;

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressStyle};
use watchfire_collector::recording::{Header, Moment, Reader};
use watchfire_engine::notify::ReceiverConfig;
use watchfire_engine::notify::receiver::email::{EmailConfig, Tls};
use watchfire_engine::notify::receiver::webhook::WebhookConfig;
use watchfire_engine::{Engine, Output};

use crate::cli::Demo;
use crate::demo::hook::HookServer;
use crate::demo::mail::MailServer;
use crate::demo::{RECORDING, routes};
use crate::exit::{Exit, Failure};
use crate::{print, replaying};

/// How long the last messages may take to arrive.
const DELIVERY_WAIT: Duration = Duration::from_secs(20);

/// Replays the recorded host, tells the demo's own receivers, and says what was delivered where.
pub fn run(args: &Demo) -> Result<Exit, Failure> {
    let reader = Reader::new(RECORDING.as_bytes()).map_err(Failure::could_not)?;
    let header = reader.header().clone();
    let moments = reader.collect::<Result<Vec<Moment>, _>>().map_err(Failure::could_not)?;
    let moments = cut(moments, args.span);
    if args.json {
        return replay_json(moments);
    }
    let hook = HookServer::start().map_err(Failure::could_not)?;
    let mail = MailServer::start().map_err(Failure::could_not)?;
    let folder = tempfile::tempdir().map_err(Failure::could_not)?;
    let mut engine = Engine::builder()
        .shipped_templates(&[])
        .signal_handlers(true)
        .storage(folder.path().join("demo.db"))
        .routes(routes())
        .receivers(receivers(&hook, &mail)?)
        .build()
        .map_err(Failure::could_not)?;
    introduce(&header, &moments);
    let counts = play(&mut engine, moments, args.speed);
    let arrived = engine.courier().is_none_or(|courier| courier.flush(DELIVERY_WAIT));
    conclude(&counts, &hook, &mail);
    if arrived { Ok(Exit::Fine) } else { Err(Failure::could_not("not all messages arrived in time")) }
}

fn cut(moments: Vec<Moment>, span: Option<Duration>) -> Vec<Moment> {
    let Some((span, first)) = span.zip(moments.first().map(|moment| moment.time)) else { return moments };
    moments.into_iter().take_while(|moment| moment.time <= first + span).collect()
}

fn replay_json(moments: Vec<Moment>) -> Result<Exit, Failure> {
    let builder = Engine::builder().shipped_templates(&[]).signal_handlers(true).routes(routes());
    let mut engine = builder.build().map_err(Failure::could_not)?;
    let mut each = |output| {
        if let Output::Alert { time, alert, .. } = output {
            println!("{}", print::transition_json(time, &alert));
        }
    };
    let last = moments.last().map(|moment| moment.time);
    moments.into_iter().for_each(|moment| replaying::feed(&mut engine, moment, &mut each));
    last.iter().for_each(|last| replaying::finish(&mut engine, *last, &mut each));
    Ok(Exit::Fine)
}

fn receivers(hook: &HookServer, mail: &MailServer) -> Result<Vec<ReceiverConfig>, Failure> {
    let address = |text: &str| text.parse().map_err(|error| Failure::could_not(format!("{text}: {error}")));
    let (to, from) = (address("oncall@demo.watchfire")?, address("Watchfire <watchfire@demo.watchfire>")?);
    let mut email = EmailConfig::new(to, from, mail.address.ip().to_string(), mail.address.port());
    email.tls = Tls::None;
    Ok(vec![
        ReceiverConfig::new("chat").with(WebhookConfig::new(format!("http://{}/hook", hook.address))),
        ReceiverConfig::new("on-call").with(WebhookConfig::new(format!("http://{}/hook", hook.address))).with(email),
    ])
}

fn introduce(header: &Header, moments: &[Moment]) {
    let bold = Style::new().bold();
    let span = moments.last().zip(moments.first()).map(|(last, first)| last.time.since(first.time)).unwrap_or_default();
    let minutes = span.as_secs() / 60;
    anstream::println!("{bold}Watchfire demo{bold:#}: {minutes} minutes of a host with 8 GPUs, faster than time");
    header.synthetic().iter().for_each(|how| println!("  synthetic: {how}"));
    header.injected().for_each(|fault| println!("  injected: {fault}"));
    anstream::println!();
}

#[derive(Default)]
struct Counts {
    fired: usize,
    resolved: usize,
    messages: usize,
}

fn play(engine: &mut Engine, moments: Vec<Moment>, speed: f64) -> Counts {
    let bar = ProgressBar::new(moments.len() as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:40.cyan/blue} {percent:>3} %  {msg}") {
        bar.set_style(style);
    }
    let (mut counts, mut last) = (Counts::default(), None);
    for moment in moments {
        pause(last, moment.time, speed);
        last = Some(moment.time);
        bar.set_message(watchfire_engine::clock::rfc3339(moment.time));
        replaying::feed(engine, moment, &mut |output| show(&bar, &output, &mut counts));
        bar.inc(1);
    }
    last.iter().for_each(|last| replaying::finish(engine, *last, &mut |output| show(&bar, &output, &mut counts)));
    bar.finish_and_clear();
    counts
}

fn pause(last: Option<watchfire_engine::Time>, now: watchfire_engine::Time, speed: f64) {
    let span = last.map(|last| now.since(last)).unwrap_or_default();
    if speed > 0.0 && speed.is_finite() {
        std::thread::sleep(span.div_f64(speed).min(Duration::from_secs(1)));
    }
}

fn show(bar: &ProgressBar, output: &Output, counts: &mut Counts) {
    match output {
        Output::Alert { time, alert, .. } => {
            use watchfire_engine::State;
            counts.fired += usize::from(alert.view.state == State::Firing);
            counts.resolved += usize::from(alert.view.state == State::Resolved);
            if alert.view.state != State::Pending && alert.view.state != State::Inactive {
                bar.suspend(|| anstream::println!("{}", print::transition(*time, alert)));
            }
        }
        Output::Message(_) => counts.messages += 1,
        other => print::trouble(other).iter().for_each(|line| bar.suspend(|| println!("{line}"))),
    }
}

fn conclude(counts: &Counts, hook: &HookServer, mail: &MailServer) {
    let (green, dim) = (AnsiColor::Green.on_default(), Style::new().dimmed());
    let mails = mail.received();
    println!();
    println!("{} firings and escalations, {} resolved, {} messages", counts.fired, counts.resolved, counts.messages);
    anstream::println!("{green}delivered{green:#} {} webhooks to http://{}/hook", hook.received().len(), hook.address);
    anstream::println!(
        "{green}delivered{green:#} {} mails to oncall@demo.watchfire by smtp://{}",
        mails.len(),
        mail.address
    );
    for mail in mails.iter().take(5) {
        anstream::println!("  {dim}{}{dim:#}", mail.subject());
    }
    println!(
        "\nNext: write your own rule (docs/rules.md), or watch this host: watchfire run -c examples/minimal/watchfire.yaml"
    );
}
