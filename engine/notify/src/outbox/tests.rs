//! The outbox over a real database.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::message::Reason;
use crate::message::tests::{START_MS, alert, message, repeated, resolved};
use crate::outbox::db::Db;
use watchfire_core::Severity::{Critical, Warning};

const LANE: (&str, &str) = ("ops", "webhook/0");

fn outbox() -> Db {
    let db = Db::memory().unwrap();
    migrate(&db.lock()).unwrap();
    db
}

fn put(db: &Db, message: &Message, channels: &[&str]) -> Enqueued {
    let mut db = db.lock();
    let tx = db.transaction().unwrap();
    let channels: Vec<String> = channels.iter().map(|one| (*one).to_owned()).collect();
    let enqueued = enqueue(&tx, message, &channels).unwrap();
    tx.commit().unwrap();
    enqueued
}

fn due_now(db: &Db, now_ms: i64) -> Option<Waiting> {
    match due(&db.lock(), LANE.0, LANE.1, now_ms).unwrap() {
        Due::Now(waiting) => Some(*waiting),
        _ => None,
    }
}

fn deliver(db: &Db, waiting: &Waiting) {
    let message = waiting.message.as_ref().unwrap();
    delivered(&mut db.lock(), waiting.id, Some(message), START_MS).unwrap();
}

fn totals_of(db: &Db) -> ChannelTotals {
    totals(&db.lock()).unwrap().into_iter().find(|one| (&*one.receiver, &*one.channel) == LANE).unwrap_or_default()
}

/// A message about one alert of its own, in a group of its own.
fn about(n: u64, reason: Reason) -> Message {
    let mut one = alert(0, Critical);
    one.fingerprint = n;
    let mut message = message(vec![one]);
    (message.key, message.group_key, message.reason) = (format!("{n}-{reason:?}"), format!("group {n}"), reason);
    message
}

#[test]
fn a_known_key_is_not_put_in_again() {
    let db = outbox();
    let hot = message(vec![alert(3, Critical)]);
    assert_eq!(put(&db, &hot, &["webhook/0", "email/0"]).added, 2);
    let again = Enqueued { known: 2, ..Enqueued::default() };
    assert_eq!(put(&db, &hot, &["webhook/0", "email/0"]), again);
    deliver(&db, &due_now(&db, 0).unwrap());
    assert!(due_now(&db, 0).is_none());
    assert_eq!(put(&db, &hot, &["webhook/0"]).known, 1, "delivered is known too");
    assert!(due_now(&db, 0).is_none());
    let added = put(&db, &hot, &["webhook/0", "email/0", "email/1"]);
    assert_eq!((added.added, added.known), (1, 2), "a channel that is new gets it");
}

#[test]
fn a_return_to_an_earlier_state_is_told_under_a_key_of_its_own() {
    let db = outbox();
    let (warm, hot) = (message(vec![alert(3, Warning)]), message(vec![alert(3, Critical)]));
    let mut keys = Vec::new();
    for message in [&warm, &hot, &warm, &hot, &warm] {
        assert_eq!(put(&db, message, &[LANE.1]).added, 1);
        let built_again = put(&db, message, &[LANE.1]);
        assert_eq!((built_again.added, built_again.known), (0, 1));
        let waiting = due_now(&db, 0).unwrap();
        let told = waiting.message.as_ref().unwrap();
        assert_eq!(told.alerts, message.alerts);
        keys.push(told.key.clone());
        deliver(&db, &waiting);
    }
    let (w, h) = (&warm.key, &hot.key);
    assert_eq!(keys, [w.clone(), h.clone(), format!("{w}-2"), format!("{h}-2"), format!("{w}-3")]);
}

#[test]
fn the_key_is_per_receiver() {
    let db = outbox();
    let hot = message(vec![alert(3, Critical)]);
    let other = Message { receiver: "night".into(), ..hot.clone() };
    assert_eq!((put(&db, &hot, &["webhook/0"]).added, put(&db, &other, &["webhook/0"]).added), (1, 1));
}

#[test]
fn nothing_is_put_in_when_the_transaction_ends_without_commit() {
    let db = outbox();
    {
        let mut db = db.lock();
        let tx = db.transaction().unwrap();
        enqueue(&tx, &message(vec![alert(3, Critical)]), &["webhook/0".into()]).unwrap();
    }
    assert!(due_now(&db, 0).is_none());
}

#[test]
fn a_group_is_told_in_order_and_a_waiting_one_holds_up_only_its_group() {
    let db = outbox();
    let (hot, over) = (message(vec![alert(3, Critical)]), message(vec![resolved(alert(3, Critical))]));
    put(&db, &hot, &[LANE.1]);
    put(&db, &over, &[LANE.1]);
    put(&db, &about(9, Reason::Change), &[LANE.1]);
    let first = due_now(&db, 0).unwrap();
    assert_eq!(first.message.as_ref().unwrap(), &hot);
    retry_at(&mut db.lock(), first.id, 5_000, false, "down", 0).unwrap();
    let other = due_now(&db, 0).unwrap();
    assert_eq!(other.message.as_ref().unwrap().group_key, "group 9", "the end must not overtake the start");
    deliver(&db, &other);
    assert!(matches!(due(&db.lock(), LANE.0, LANE.1, 4_999).unwrap(), Due::Later(5_000)));
    deliver(&db, &due_now(&db, 5_000).unwrap());
    assert_eq!(due_now(&db, 5_000).unwrap().message.unwrap(), over, "the end follows");
}

#[test]
fn a_clock_that_was_put_back_delays_nothing() {
    let db = outbox();
    put(&db, &message(vec![alert(3, Critical)]), &[LANE.1]);
    let id = due_now(&db, START_MS).unwrap().id;
    retry_at(&mut db.lock(), id, START_MS + 5_000, false, "down", START_MS).unwrap();
    assert!(due_now(&db, START_MS).is_none());
    assert!(due_now(&db, START_MS - 86_400_000).is_some());
}

#[test]
fn what_was_told_is_remembered_per_channel_until_it_ends() {
    let db = outbox();
    put(&db, &message(vec![alert(3, Warning)]), &[LANE.1]);
    let first = due_now(&db, 0).unwrap();
    assert_eq!(first.told, [None]);
    deliver(&db, &first);
    put(&db, &message(vec![alert(3, Critical)]), &[LANE.1, "webhook/1"]);
    let second = due_now(&db, 0).unwrap();
    assert_eq!(second.told, [Some(Warning)]);
    match due(&db.lock(), "ops", "webhook/1", 0).unwrap() {
        Due::Now(waiting) => assert_eq!(waiting.told, [None]),
        other => unreachable!("{other:?}"),
    };
    deliver(&db, &second);
    put(&db, &message(vec![resolved(alert(3, Critical))]), &[LANE.1]);
    let third = due_now(&db, 0).unwrap();
    assert_eq!(third.told, [Some(Critical)]);
    deliver(&db, &third);
    put(&db, &repeated(vec![alert(3, Warning)], 7), &[LANE.1]);
    assert_eq!(due_now(&db, 0).unwrap().told, [None]);
}

#[test]
fn a_restart_counts_what_was_cut_short_and_cuts_only_our_own_waits() {
    let db = outbox();
    for n in 0..3 {
        put(&db, &about(n, Reason::Change), &[LANE.1]);
    }
    let ours = due_now(&db, 0).unwrap().id;
    retry_at(&mut db.lock(), ours, 300_000, false, "down", 0).unwrap();
    let theirs = due_now(&db, 0).unwrap().id;
    retry_at(&mut db.lock(), theirs, 300_000, true, "Retry-After", 0).unwrap();
    let sending = due_now(&db, 0).unwrap().id;
    begin(&db.lock(), sending, 0).unwrap();
    let started = start(&mut db.lock(), &[LANE], 0).unwrap();
    assert_eq!(started, Started { waiting: 3, doubtful: 1, orphaned: 0 });
    assert_eq!(totals_of(&db).doubtful, 1);
    let first = due_now(&db, 0).unwrap();
    assert_eq!(first.id, ours);
    deliver(&db, &first);
    assert_eq!(due_now(&db, 0).unwrap().id, sending);
    assert_eq!(due_now(&db, 0).unwrap().attempts, 1, "tries are counted over restarts");
    deliver(&db, &due_now(&db, 0).unwrap());
    assert!(due_now(&db, 299_999).is_none());
    assert_eq!(due_now(&db, 300_000).unwrap().id, theirs);
    assert_eq!(start(&mut db.lock(), &[LANE], 0).unwrap().doubtful, 0, "counted once");
}

#[test]
fn messages_for_channels_that_are_gone_are_given_up_aloud() {
    let db = outbox();
    put(&db, &message(vec![alert(3, Critical)]), &[LANE.1, "webhook/1"]);
    let started = start(&mut db.lock(), &[("ops", "webhook/1")], 9).unwrap();
    assert_eq!(started, Started { waiting: 1, doubtful: 0, orphaned: 1 });
    let totals = totals_of(&db);
    assert_eq!((totals.failed, totals.queued), (1, 0));
    assert_eq!(totals.last_error.as_deref(), Some("the channel is no longer configured"));
}

#[test]
fn a_damaged_row_is_told_apart_and_never_sent() {
    let db = outbox();
    put(&db, &message(vec![alert(3, Critical)]), &[LANE.1]);
    let sql = "UPDATE outbox_messages SET body = replace(body, 'critical', 'warning')";
    db.lock().execute(sql, []).unwrap();
    let waiting = due_now(&db, 0).unwrap();
    let why = waiting.message.unwrap_err();
    assert!(why.contains("is damaged (its checksum differs)"), "{why}");
    refused(&mut db.lock(), waiting.id, &why, 0).unwrap();
    assert_eq!(totals_of(&db).failed, 1);
}

#[test]
fn the_queue_is_bounded_and_the_newest_state_stays() {
    let db = outbox();
    let mut dropped = Dropped::default();
    for n in 0..QUEUE_MAX as u64 {
        let reason = if n % 2 == 0 { Reason::Change } else { Reason::Repeat };
        dropped += put(&db, &about(n, reason), &[LANE.1]).dropped;
    }
    assert_eq!(dropped, Dropped::default());
    dropped += put(&db, &about(5_000, Reason::Change), &[LANE.1]).dropped;
    assert_eq!(dropped, Dropped { repeats: 1, ..Dropped::default() });
    for n in 6_000..6_000 + QUEUE_MAX as u64 {
        dropped += put(&db, &about(n, Reason::Change), &[LANE.1]).dropped;
    }
    assert_eq!(dropped, Dropped { repeats: QUEUE_MAX / 2, ..Dropped::default() });
    let totals = totals_of(&db);
    assert_eq!(totals.dropped, QUEUE_MAX as u64 / 2);
    assert_eq!(totals.queued, 3 * QUEUE_MAX as u64 / 2 + 1, "each is the last word on its alert");
    assert_eq!(put(&db, &about(1, Reason::Repeat), &[LANE.1]).known, 1, "a dropped one is known");
}

#[test]
fn a_message_that_is_being_sent_is_not_dropped() {
    let db = outbox();
    put(&db, &about(1, Reason::Repeat), &[LANE.1]);
    let sending = due_now(&db, 0).unwrap().id;
    begin(&db.lock(), sending, 0).unwrap();
    for n in 0..=QUEUE_MAX as u64 {
        put(&db, &about(10 + n, Reason::Change), &[LANE.1]);
    }
    assert_eq!(due_now(&db, 0).unwrap().id, sending);
}

#[test]
fn finished_ones_are_kept_for_a_week_and_up_to_a_number() {
    let db = outbox();
    for n in 0..10 {
        put(&db, &about(n, Reason::Change), &[LANE.1]);
        let waiting = due_now(&db, 0).unwrap();
        let at_ms = START_MS + i64::try_from(n).unwrap();
        delivered(&mut db.lock(), waiting.id, None, at_ms).unwrap();
    }
    put(&db, &about(99, Reason::Change), &[LANE.1]);
    let week_ms = i64::try_from(KEPT_FOR.as_millis()).unwrap();
    assert_eq!(prune(&mut db.lock(), START_MS + week_ms).unwrap(), 0);
    assert_eq!(prune(&mut db.lock(), START_MS + week_ms + 3).unwrap(), 3);
    assert_eq!(settle::prune_to(&mut db.lock(), START_MS, 4).unwrap(), 3);
    let rows = |table: &str| -> i64 {
        db.lock().query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    assert_eq!((rows("outbox_deliveries"), rows("outbox_messages")), (5, 5), "four kept, one waits");
    assert!(due_now(&db, 0).is_some(), "what waits is never cleared away");
    let bodies = "SELECT sum(length(body) > 0) FROM outbox_messages";
    let with_body: i64 = db.lock().query_row(bodies, [], |row| row.get(0)).unwrap();
    assert_eq!(with_body, 1, "of what is finished only the key is kept");
}

#[test]
fn tables_of_a_newer_version_are_refused() {
    let db = outbox();
    migrate(&db.lock()).unwrap();
    db.lock().execute("UPDATE outbox_meta SET value = 9", []).unwrap();
    let error = migrate(&db.lock()).unwrap_err().to_string();
    assert!(error.starts_with("the outbox has version 9, this build reads 1"), "{error}");
}
