//! What statements are called in messages.

use sqlparser::ast::Statement;

/// sqlglot's name for the node; `Command` where it keeps raw text.
pub(in crate::toolset::sql::guard) fn node_name(statement: &Statement) -> &'static str {
    match statement {
        Statement::Query(_) => "Select",
        Statement::Insert(_) => "Insert",
        Statement::Update(_) => "Update",
        Statement::Delete(_) => "Delete",
        Statement::Merge(_) => "Merge",
        Statement::CreateView(_)
        | Statement::CreateTable(_)
        | Statement::CreateVirtualTable { .. }
        | Statement::CreateIndex(_)
        | Statement::CreateSecret { .. }
        | Statement::CreatePolicy(_)
        | Statement::CreateConnector(_)
        | Statement::CreateOperator(_)
        | Statement::CreateOperatorFamily(_)
        | Statement::CreateOperatorClass(_)
        | Statement::CreateCollation(_)
        | Statement::CreateSchema { .. }
        | Statement::CreateDatabase { .. }
        | Statement::CreateFunction(_)
        | Statement::CreateTrigger(_)
        | Statement::CreateProcedure { .. }
        | Statement::CreateMacro { .. }
        | Statement::CreateStage { .. }
        | Statement::CreateSequence { .. }
        | Statement::CreateDomain(_)
        | Statement::CreateType { .. } => "Create",
        Statement::AlterTable(_)
        | Statement::AlterSchema(_)
        | Statement::AlterIndex { .. }
        | Statement::AlterView { .. }
        | Statement::AlterFunction(_)
        | Statement::AlterType(_)
        | Statement::AlterCollation(_)
        | Statement::AlterOperator(_)
        | Statement::AlterOperatorFamily(_)
        | Statement::AlterOperatorClass(_)
        | Statement::AlterPolicy(_)
        | Statement::AlterConnector { .. }
        | Statement::AlterSession { .. } => "Alter",
        Statement::Drop { .. }
        | Statement::DropFunction(_)
        | Statement::DropDomain(_)
        | Statement::DropProcedure { .. }
        | Statement::DropSecret { .. }
        | Statement::DropPolicy(_)
        | Statement::DropConnector { .. }
        | Statement::DropExtension(_)
        | Statement::DropOperator(_)
        | Statement::DropOperatorFamily(_)
        | Statement::DropOperatorClass(_)
        | Statement::DropTrigger(_) => "Drop",
        Statement::Truncate(_) => "TruncateTable",
        Statement::Copy { .. } | Statement::CopyIntoSnowflake { .. } => "Copy",
        Statement::Analyze(_) => "Analyze",
        Statement::Set(_) => "Set",
        Statement::Use(_) => "Use",
        Statement::Pragma { .. } => "Pragma",
        Statement::Kill { .. } => "Kill",
        Statement::Comment { .. } => "Comment",
        Statement::Grant(_) => "Grant",
        Statement::Revoke(_) => "Revoke",
        Statement::StartTransaction { .. } => "Transaction",
        Statement::Commit { .. } => "Commit",
        Statement::Rollback { .. } => "Rollback",
        Statement::Cache { .. } => "Cache",
        Statement::UNCache { .. } => "Uncache",
        Statement::AttachDatabase { .. } | Statement::AttachDuckDBDatabase { .. } => "Attach",
        Statement::DetachDuckDBDatabase { .. } => "Detach",
        Statement::Install { .. } => "Install",
        Statement::ExportData(_) => "Export",
        Statement::List(_) => "ListStage",
        Statement::Declare { .. } => "Declare",
        Statement::ExplainTable { .. } | Statement::Explain { .. } => "Describe",
        Statement::Msck(_)
        | Statement::Load { .. }
        | Statement::Directory { .. }
        | Statement::Case(_)
        | Statement::If(_)
        | Statement::While(_)
        | Statement::Raise(_)
        | Statement::Call(_)
        | Statement::Open(_)
        | Statement::Close { .. }
        | Statement::CreateRole(_)
        | Statement::CreateServer(_)
        | Statement::AlterRole { .. }
        | Statement::CreateExtension(_)
        | Statement::Fetch { .. }
        | Statement::Flush { .. }
        | Statement::Discard { .. }
        | Statement::ShowFunctions { .. }
        | Statement::ShowVariable { .. }
        | Statement::ShowStatus { .. }
        | Statement::ShowVariables { .. }
        | Statement::ShowCreate { .. }
        | Statement::ShowColumns { .. }
        | Statement::ShowCatalogs { .. }
        | Statement::ShowDatabases { .. }
        | Statement::ShowProcessList { .. }
        | Statement::ShowSchemas { .. }
        | Statement::ShowCharset(_)
        | Statement::ShowObjects(_)
        | Statement::ShowTables { .. }
        | Statement::ShowViews { .. }
        | Statement::ShowCollation { .. }
        | Statement::Assert { .. }
        | Statement::Deny(_)
        | Statement::Deallocate { .. }
        | Statement::Execute { .. }
        | Statement::Prepare { .. }
        | Statement::Savepoint { .. }
        | Statement::ReleaseSavepoint { .. }
        | Statement::Lock(_)
        | Statement::LockTables { .. }
        | Statement::UnlockTables
        | Statement::Unload { .. }
        | Statement::OptimizeTable { .. }
        | Statement::LISTEN { .. }
        | Statement::UNLISTEN { .. }
        | Statement::NOTIFY { .. }
        | Statement::LoadData { .. }
        | Statement::RenameTable(_)
        | Statement::Remove(_)
        | Statement::RaisError { .. }
        | Statement::Throw(_)
        | Statement::Print(_)
        | Statement::WaitFor(_)
        | Statement::Return(_)
        | Statement::CreateUser(_)
        | Statement::AlterUser(_)
        | Statement::Vacuum(_)
        | Statement::Reset(_) => "Command",
    }
}
