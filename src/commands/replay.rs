//! `watchfire replay`

use std::iter::Peekable;

use watchfire_collector::input::{self, CsvColumn, Input, InputOptions};
use watchfire_collector::recording::Moment;
use watchfire_engine::{Output, Time};

use crate::cli::Replay;
use crate::exit::{Exit, Failure};
use crate::{config, print, replaying};

/// Runs recorded samples through rules and routes. Nothing is sent.
pub fn run(args: &Replay) -> Result<Exit, Failure> {
    let mut config = config::read(&args.config)?;
    let mut engine = config::builder(&mut config).build().map_err(Failure::wrong)?;
    let mut inputs = open(args)?;
    let mut each = |output: Output| show(args, &output);
    let mut last = None;
    while let Some(moment) = next(&mut inputs)? {
        last = Some(moment.time);
        replaying::feed(&mut engine, moment, &mut each);
    }
    match last {
        Some(last) => replaying::finish(&mut engine, last, &mut each),
        None => return Err(Failure::wrong("the input holds no sample")),
    }
    Ok(Exit::Fine)
}

fn open(args: &Replay) -> Result<Vec<Peekable<Input>>, Failure> {
    let csv =
        args.csv.iter().map(|pair| pair.parse::<CsvColumn>().map_err(|why| Failure::wrong(format!("--csv: {why}"))));
    let options = InputOptions { csv: csv.collect::<Result<_, _>>()?, ..InputOptions::default() };
    let open = |path| {
        let input = input::open(path, &options).map_err(Failure::wrong)?;
        if let Some(how) = input.header().synthetic() {
            eprintln!("{}: synthetic: {how}", input.path().display());
        }
        Ok(input.peekable())
    };
    args.input.iter().map(|path| open(path)).collect()
}

/// The earliest moment of all inputs.
fn next(inputs: &mut [Peekable<Input>]) -> Result<Option<Moment>, Failure> {
    let time = |input: &mut Peekable<Input>| match input.peek() {
        Some(Ok(moment)) => Some(moment.time),
        Some(Err(_)) => Some(Time::EPOCH),
        None => None,
    };
    let first = inputs.iter_mut().filter_map(|input| Some((time(input)?, input))).min_by_key(|(time, _)| *time);
    first.and_then(|(_, input)| input.next()).transpose().map_err(Failure::wrong)
}

fn show(args: &Replay, output: &Output) {
    match output {
        Output::Alert { time, alert, .. } if args.json => println!("{}", print::transition_json(*time, alert)),
        Output::Alert { time, alert, .. } => anstream::println!("{}", print::transition(*time, alert)),
        Output::Message(message) if args.notifications => println!("{}", print::message_json(message)),
        other => print::trouble(other).iter().for_each(|line| eprintln!("{line}")),
    }
}
