//! A program with tasks and a toolset of its own, for the Dag `harbour` in `examples/harbour.py`:
//!
//! ```sh
//! cargo run --example harbour -- run examples/harbour.py
//! cargo run --example harbour -- worker --queues agents
//! ```

use std::process::ExitCode;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use updraft::sdk::{Agent, App, TaskContext, TaskError, Tool, ToolDefinition, ToolError, Toolset};

/// What the stub `berth(ship, nights)` is called with.
#[derive(Deserialize)]
struct Stay {
    ship: String,
    nights: u32,
}

#[derive(Serialize)]
struct Berth {
    ship: String,
    quay: String,
    price: u32,
}

/// Finds a quay for a ship. A ship without a stay is skipped; without a harbour there is nothing to try again.
async fn berth(context: TaskContext, stay: Stay) -> Result<Berth, TaskError> {
    if stay.nights == 0 {
        return Err(TaskError::skipped(format!("{} sails on", stay.ship)));
    }
    let Some(quay) = context.variable("harbour_quay").await? else {
        return Err(TaskError::failed_for_good(
            "the variable harbour_quay names no quay",
        ));
    };
    tracing::info!("{} lies at quay {quay}", stay.ship);
    context.xcom_push("quay", &quay).await?;
    Ok(Berth {
        ship: stay.ship,
        quay,
        price: 40 * stay.nights,
    })
}

/// What the stub `invoice(berths)` is called with: what the instances of `berth` have returned.
#[derive(Deserialize)]
struct Berths {
    berths: Vec<Value>,
}

async fn invoice(_: TaskContext, Berths { berths }: Berths) -> Result<u64, TaskError> {
    let prices = berths.iter().filter_map(|berth| berth["price"].as_u64());
    Ok(prices.sum())
}

/// What the stub `survey(basin)` is called with.
#[derive(Deserialize)]
struct Survey {
    basin: String,
}

#[derive(Deserialize, JsonSchema)]
struct Mark {
    /// The number on the buoy.
    number: u32,
}

#[derive(Deserialize, JsonSchema, Serialize)]
struct Soundings {
    /// Metres at each mark.
    depths: Vec<u32>,
}

/// An agent of its own, with a typed tool and a typed answer. What it has found out is not asked for again when the task is
/// retried: the line breaks at the third mark on the first try.
async fn survey(context: TaskContext, Survey { basin }: Survey) -> Result<Soundings, TaskError> {
    let model = context.model("pydanticai_default", None).await?;
    let is_first_try = context.try_number() == 1;
    let sound = move |mark: Mark| async move {
        if mark.number == 3 && is_first_try {
            return Err(ToolError::Fatal("the line broke".to_owned()));
        }
        Ok(10 + mark.number)
    };
    let agent = Agent::builder("surveyor", model)
        .instructions("Sound the basin at each of its three marks.")
        .tool(Tool::new("sound", "Measures the depth at a mark.", sound))
        .output::<Soundings>()
        .build();
    let prompt = format!("Survey the basin {basin}.");
    let answer = agent.run_durably(&context, &prompt).await?;
    Ok(answer.output)
}

/// `toolsets=["tides"]`: when the water is high.
struct Tides {
    quay: String,
}

#[async_trait]
impl Toolset for Tides {
    fn id(&self) -> String {
        "tides".to_owned()
    }

    fn label(&self) -> &str {
        "Tides"
    }

    async fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError> {
        Ok(vec![ToolDefinition {
            name: "high_water".to_owned(),
            description: Some("The hour of high water on a day.".to_owned()),
            parameters: json!({
                "type": "object",
                "properties": {"day": {"type": "integer", "minimum": 1, "maximum": 31}},
                "required": ["day"],
                "additionalProperties": false,
            }),
            sequential: false,
            max_retries: None,
        }])
    }

    async fn call(&self, _: &str, args: Map<String, Value>) -> Result<Value, ToolError> {
        let day = args.get("day").and_then(Value::as_u64).unwrap_or_default();
        if day == 31 {
            return Err(ToolError::Retry("the table ends with day 30".to_owned()));
        }
        Ok(json!({"quay": self.quay, "hour": day * 50 / 60 % 24}))
    }
}

fn tides(context: TaskContext) -> Result<Tides, TaskError> {
    let quay = context.params().get("quay").and_then(Value::as_str);
    Ok(Tides {
        quay: quay.unwrap_or("A").to_owned(),
    })
}

fn main() -> ExitCode {
    App::new()
        .task("harbour", "berth", berth)
        .task("harbour", "invoice", invoice)
        .task("harbour", "survey", survey)
        .toolset("tides", tides)
        .main()
}
