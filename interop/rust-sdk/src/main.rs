//! Sends an event with the Rust SDK of CloudEvents in binary mode, and two as a batch.
//!
//!     rust-sdk URL TOKEN
//!
//! Prints status and body of each answer, one per line.

use cloudevents::binding::reqwest::RequestBuilderExt;
use cloudevents::{Event, EventBuilder, EventBuilderV10};
use serde_json::json;

fn event(id: &str) -> Event {
    let data = json!({"skill_id": "grasp", "success": true, "id": "INNER", "type": "note"});
    EventBuilderV10::new()
        .id(id)
        .source("arm-rs")
        .ty("execution_result")
        .time("2026-05-06T10:00:00Z")
        .data("application/json", data)
        .build()
        .expect("an event")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (url, token) = (args.next().expect("URL"), args.next().expect("TOKEN"));
    let client = reqwest::Client::new();
    let post = || client.post(&url).bearer_auth(&token);
    let requests = [
        post().event(event("rs-binary"))?,
        post().events(vec![event("rs-batch-1"), event("rs-batch-2")])?,
    ];
    for request in requests {
        let answer = request.send().await?;
        println!("{} {}", answer.status().as_u16(), answer.text().await?);
    }
    Ok(())
}
