//! `watchfire replay`

use std::iter::Peekable;

use watchfire_collector::input::{self, CsvColumn, Input, InputOptions};
use watchfire_engine::Output;

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
    while let Some(moment) = replaying::next(&mut inputs)? {
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

fn show(args: &Replay, output: &Output) {
    match output {
        Output::Alert { time, alert, .. } if args.json => println!("{}", print::transition_json(*time, alert)),
        Output::Alert { time, alert, .. } => anstream::println!("{}", print::transition(*time, alert)),
        Output::Message(message) if args.notifications => println!("{}", print::message_json(message)),
        other => print::trouble(other).iter().for_each(|line| eprintln!("{line}")),
    }
}
