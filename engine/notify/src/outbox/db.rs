//! The database file that alert state and outbox share.

use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, ErrorCode};

/// How long a statement waits for another process that holds the file.
pub const BUSY_WAIT: Duration = Duration::from_secs(5);

/// Readable and writable for the owner alone.
const PRIVATE: u32 = 0o600;

/// A shared handle to the database. Cheap to clone; one user at a time.
#[derive(Clone)]
pub struct Db(Arc<Mutex<Connection>>);

/// What [`Db::open`] had to do.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// Where a damaged file was put, if there was one. What it held is lost to this process.
    pub set_aside: Option<PathBuf>,
}

/// The database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// It cannot be opened or set up.
    #[error("cannot open the database {}: {why}; check that the folder exists and is writable", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// SQLite's reason.
        why: rusqlite::Error,
    },
    /// It is damaged and cannot be put aside.
    #[error("the database {} is damaged ({damage}) and cannot be renamed: {why}", path.display())]
    SetAside {
        /// The file.
        path: PathBuf,
        /// What SQLite said of it.
        damage: String,
        /// Why it cannot be renamed.
        why: std::io::Error,
    },
}

impl Db {
    /// Opens a file, or makes it. A damaged one is renamed to `NAME.damaged-MILLISECONDS`, which is said in the
    /// log as an error, and a new one is made: alerting goes on without its memory.
    ///
    /// # Errors
    /// The file can neither be used nor renamed.
    pub fn open(path: &Path) -> Result<(Self, Opened), DbError> {
        let failed = |why| DbError::Open { path: path.to_owned(), why };
        match open_checked(path) {
            Ok(connection) => Ok((Db::over(connection), Opened::default())),
            Err(damage) if is_damage(&damage) => {
                let set_aside = set_aside(path, &damage)?;
                tracing::error!(path = %path.display(), set_aside = %set_aside.display(), %damage,
                    "the database is damaged and was set aside; alert state and undelivered messages in it are lost");
                let connection = open_checked(path).map_err(failed)?;
                Ok((Db::over(connection), Opened { set_aside: Some(set_aside) }))
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// A database in memory, for tests and for embedders who want nothing kept.
    ///
    /// # Errors
    /// SQLite's.
    pub fn memory() -> rusqlite::Result<Self> {
        let connection = Connection::open_in_memory()?;
        set_up(&connection)?;
        Ok(Db::over(connection))
    }

    fn over(connection: Connection) -> Self {
        Db(Arc::new(Mutex::new(connection)))
    }

    /// The connection, for as long as the guard lives. A panic of another user has rolled its transaction back,
    /// so what is found is whole.
    pub fn lock(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the file where it is missing, for its owner alone: messages and labels are nobody else's business. SQLite
/// gives the files beside it the same mode. Where it cannot be made, opening says why.
fn make_private(path: &Path) {
    let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(PRIVATE).open(path);
    if let Ok(file) = options {
        let _ = file.set_permissions(Permissions::from_mode(PRIVATE));
    }
}

fn open_checked(path: &Path) -> rusqlite::Result<Connection> {
    make_private(path);
    let connection = Connection::open(path)?;
    set_up(&connection)?;
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict == "ok" {
        return Ok(connection);
    }
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    Err(rusqlite::Error::SqliteFailure(code, Some(verdict)))
}

/// WAL, so that readers never wait; FULL, so that a message that was committed survives a power cut (with NORMAL
/// the last commits may be lost, see https://sqlite.org/pragma.html#pragma_synchronous).
fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_WAIT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

fn set_aside(path: &Path, damage: &rusqlite::Error) -> Result<PathBuf, DbError> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let suffix = format!(".damaged-{}", since.as_millis());
    let aside = with_suffix(path, &suffix);
    let failed = |why| DbError::SetAside { path: path.to_owned(), damage: damage.to_string(), why };
    std::fs::rename(path, &aside).map_err(failed)?;
    for part in ["-wal", "-shm"] {
        // They are not always there; where they are, they belong to the damaged file and not to the new one.
        let _ = std::fs::rename(with_suffix(path, part), with_suffix(&aside, part));
    }
    Ok(aside)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn commits_are_durable_and_readers_do_not_wait() {
        let dir = tempfile::tempdir().unwrap();
        let (db, opened) = Db::open(&dir.path().join("a.db")).unwrap();
        assert_eq!(opened, Opened::default());
        let pragma = |name: &str| -> String {
            db.lock()
                .pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0))
                .map(|v| format!("{v:?}"))
                .unwrap()
        };
        assert_eq!(pragma("journal_mode"), r#"Text("wal")"#);
        assert_eq!(pragma("synchronous"), "Integer(2)");
    }

    #[test]
    fn a_damaged_file_is_set_aside_and_a_new_one_opened() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let junk = "this is no database ".repeat(100);
        std::fs::write(&path, &junk).unwrap();
        std::fs::write(dir.path().join("a.db-wal"), "old").unwrap();
        let (db, opened) = Db::open(&path).unwrap();
        let aside = opened.set_aside.unwrap();
        assert_eq!(std::fs::read_to_string(&aside).unwrap(), junk, "nothing is thrown away");
        db.lock().execute_batch("CREATE TABLE t (x)").unwrap();
        drop(db);
        assert_eq!(Db::open(&path).unwrap().1, Opened::default());
    }

    #[test]
    fn damage_within_a_file_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        {
            let (db, _) = Db::open(&path).unwrap();
            let db = db.lock();
            db.execute_batch("CREATE TABLE t (x); CREATE INDEX i ON t (x);").unwrap();
            for n in 0..2000 {
                db.execute("INSERT INTO t VALUES (?1)", [format!("row {n}")]).unwrap();
            }
            db.pragma_update(None, "wal_checkpoint", "TRUNCATE").unwrap();
        }
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.len() / 2;
        bytes[at..at + 4096].fill(0xab);
        std::fs::write(&path, bytes).unwrap();
        assert!(Db::open(&path).unwrap().1.set_aside.is_some());
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error_and_not_damage() {
        let error = Db::open(Path::new("/no/such/folder/a.db")).err().unwrap().to_string();
        assert!(error.starts_with("cannot open the database /no/such/folder/a.db:"), "{error}");
    }

    #[test]
    fn a_panic_of_another_user_rolls_back_and_goes_on() {
        let db = Db::memory().unwrap();
        db.lock().execute_batch("CREATE TABLE t (x)").unwrap();
        let other = db.clone();
        let died = std::thread::spawn(move || {
            let mut guard = other.lock();
            let tx = guard.transaction().unwrap();
            tx.execute("INSERT INTO t VALUES (1)", []).unwrap();
            panic!("dies with the lock");
        });
        assert!(died.join().is_err());
        let n: i64 = db.lock().query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(n, 0);
    }
}
