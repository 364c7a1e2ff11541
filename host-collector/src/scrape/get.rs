//! Fetches one text over HTTP, for tools that talk to a running Watchfire.

use std::time::Duration;

use super::fetch;

/// Fetches a text.
///
/// # Errors
/// Why there is none, in one line.
pub async fn get(url: &str, timeout: Duration) -> Result<String, String> {
    let parsed = reqwest::Url::parse(url).map_err(|error| format!("{url:?} is no address: {error}"))?;
    let client = fetch::client(&parsed)?;
    let said = |error: reqwest::Error| error.without_url().to_string();
    let response = client.get(parsed).timeout(timeout).send().await.map_err(said)?;
    let status = response.status();
    let text = response.text().await.map_err(said)?;
    if status.is_success() { Ok(text) } else { Err(refused(status, &text)) }
}

/// A status, and the first words that came with it.
fn refused(status: reqwest::StatusCode, text: &str) -> String {
    let words: String = text.lines().next().unwrap_or_default().chars().filter(|c| !c.is_control()).take(200).collect();
    if words.is_empty() { format!("it answered {status}") } else { format!("it answered {status}: {words}") }
}
