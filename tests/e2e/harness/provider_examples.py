"""The example Dags of the installed provider."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

# The files whose Dags the tests run.
RUN = (
    "example_agent",
    "example_agent_durable",
    "example_agent_recovery",
    "example_agent_skills",
    "example_custom_toolset",
    "example_datafusion_toolset",
    "example_decision_model",
    "example_llm",
    "example_llm_analysis_pipeline",
    "example_llm_branch",
    "example_llm_classification",
    "example_llm_fallback",
    "example_mcp",
    "example_object_storage_toolset",
    "example_pydantic_ai_agent",
    "example_pydantic_ai_hook",
    "example_quickstart",
    "example_sql_toolset",
    "example_why_common_ai",
)


def folder() -> Path:
    """Where they are, without importing anything of Airflow."""
    found = importlib.util.find_spec("airflow")
    if found is None or not found.submodule_search_locations:
        raise RuntimeError("Airflow is not installed here")
    return Path(found.submodule_search_locations[0]) / "providers/common/ai/example_dags"


def files() -> list[Path]:
    return sorted(folder().glob("example_*.py"))


def copy_to(destination: Path) -> None:
    """Copies the Dags that are run, with what lies beside them."""
    destination.mkdir()
    for name in RUN:
        shutil.copy2(folder() / f"{name}.py", destination)
    shutil.copy2(folder() / "example_agent_spec.yaml", destination)
    shutil.copytree(folder() / "skills", destination / "skills")
