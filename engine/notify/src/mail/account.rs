//! Mail accounts: after a refused log-in the account is left alone for a while, whoever wants to use it, since
//! servers lock accounts that keep trying.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long an account is left alone after a refused log-in.
pub const LOGIN_AGAIN_AFTER: Duration = Duration::from_secs(5 * 60);

/// One account: when its log-in was last refused, in milliseconds since the Unix epoch. The lock is held while a
/// log-in is under way, so that two channels never try a wrong password at once.
pub type Account = Arc<tokio::sync::Mutex<Option<i64>>>;

/// All accounts, by server and user.
#[derive(Clone, Default)]
pub(crate) struct Accounts(Arc<Mutex<HashMap<(String, String), Account>>>);

impl Accounts {
    /// The account of a user on a server.
    pub fn get(&self, server: &str, user: &str) -> Account {
        let mut accounts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        accounts.entry((server.to_owned(), user.to_owned())).or_default().clone()
    }
}

/// How long an account whose log-in was refused at `refused_ms` is still left alone.
pub(crate) fn left_alone(refused_ms: Option<i64>, now_ms: i64) -> Option<Duration> {
    let since_ms = u64::try_from(now_ms.saturating_sub(refused_ms?)).ok()?;
    LOGIN_AGAIN_AFTER.checked_sub(Duration::from_millis(since_ms)).filter(|rest| !rest.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_shared_by_server_and_user() {
        let accounts = Accounts::default();
        assert!(Arc::ptr_eq(&accounts.get("a:25", "me"), &accounts.get("a:25", "me")));
        assert!(!Arc::ptr_eq(&accounts.get("a:25", "me"), &accounts.get("a:25", "you")));
        assert!(!Arc::ptr_eq(&accounts.get("a:25", "me"), &accounts.get("b:25", "me")));
    }

    #[test]
    fn it_is_left_alone_for_five_minutes() {
        let rest = |now_ms| left_alone(Some(1_000), now_ms).map(|rest| rest.as_secs());
        assert_eq!(left_alone(None, 5), None);
        assert_eq!(rest(1_000), Some(300));
        assert_eq!(rest(300_000), Some(1));
        assert_eq!(rest(301_000), None);
        assert_eq!(rest(0), None, "a clock that stepped back locks nobody out");
    }
}
