//! A plain program, neither worker nor task: an agent answers a question from a database, both behind connections that
//! stand in the environment.
//!
//! ```sh
//! export AIRFLOW_CONN_SHOP='{"conn_type": "sqlite", "host": "dags/data/shop.db"}'
//! export AIRFLOW_CONN_LLM='{"conn_type": "pydanticai", "password": "sk-...", "extra": {"model": "openai:gpt-5"}}'
//! cargo run --example ask_shop -- "Who are our three best customers?"
//! ```

use std::process::ExitCode;

use schemars::JsonSchema;
use serde::Deserialize;
use updraft::sdk::{Agent, Environment, TaskError};
use updraft::toolset::sql::{SqlToolset, SqlToolsetConfig};

/// The answer, with what it rests on.
#[derive(Debug, Deserialize, JsonSchema)]
struct Finding {
    answer: String,
    /// The query that gave the figures.
    sql: String,
}

async fn ask(question: &str) -> Result<Finding, TaskError> {
    let airflow = Environment::load()?;
    let shop = SqlToolsetConfig {
        allowed_tables: Some(vec!["customers".to_owned(), "orders".to_owned()]),
        ..SqlToolsetConfig::new("shop")
    };
    let agent = Agent::builder("analyst", airflow.model("llm", None).await?)
        .instructions("Answer from the database only.")
        .toolset(SqlToolset::new(
            shop,
            airflow.connections(),
            airflow.mask(),
        )?)
        .output::<Finding>()
        .build();
    Ok(agent.run(question).await?.output)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let question = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
    match ask(&question).await {
        Ok(finding) => {
            println!("{}\n\n{}", finding.answer, finding.sql);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
