//! Statements: those that are not walked are refused by name.

use sqlparser::ast::{
    Analyze, CommentObject, Grant, GrantObjects, ObjectName, Revoke, SchemaName, Statement,
    UtilityOption,
};

use super::node_name::node_name;
use super::{Role, Walk};

impl Walk {
    /// The statement itself, as opposed to one inside another.
    pub(super) fn top(&mut self, statement: &Statement) {
        if let Statement::ExplainTable {
            describe_alias: _,
            hive_format: _,
            has_table_keyword: _,
            table_name,
        } = statement
        {
            self.table(table_name, Role::Read);
        } else if let Statement::Explain {
            describe_alias: _,
            analyze: _,
            verbose: _,
            query_plan: _,
            estimate: _,
            statement,
            format: _,
            options,
        } = statement
        {
            for UtilityOption { name: _, arg } in options.iter().flatten() {
                self.exprs(arg);
            }
            self.enter(|walk| walk.statement(statement));
        } else {
            self.statement(statement);
        }
    }

    pub(super) fn statement(&mut self, statement: &Statement) {
        let name = node_name(statement);
        match statement {
            Statement::Query(query) => self.query(query),
            Statement::Insert(insert) => {
                self.modifies(name);
                self.insert(insert);
            }
            Statement::Update(update) => {
                self.modifies(name);
                self.update(update);
            }
            Statement::Delete(delete) => {
                self.modifies(name);
                self.delete(delete);
            }
            Statement::Merge(merge) => {
                self.modifies(name);
                self.merge(merge);
            }
            Statement::CreateTable(create) => {
                self.modifies(name);
                self.create_table(create);
            }
            Statement::CreateView(create) => {
                self.modifies(name);
                self.create_view(create);
            }
            Statement::CreateIndex(create) => {
                self.modifies(name);
                self.create_index(create);
            }
            Statement::AlterTable(alter) => {
                self.modifies(name);
                self.alter_table(alter);
            }
            Statement::Drop {
                object_type,
                if_exists: _,
                names,
                cascade: _,
                restrict: _,
                purge: _,
                temporary: _,
                table,
            } => {
                self.modifies(name);
                self.drop(*object_type, names, table.as_ref());
            }
            Statement::Truncate(truncate) => {
                self.modifies(name);
                self.truncate(truncate);
            }
            Statement::Comment {
                object_type,
                object_name,
                comment: _,
                if_exists: _,
            } => {
                self.comment(*object_type, object_name);
            }
            Statement::Analyze(analyze) => self.analyze(analyze),
            Statement::Grant(Grant {
                privileges: _,
                objects,
                grantees: _,
                with_grant_option: _,
                as_grantor: _,
                granted_by: _,
                current_grants: _,
            })
            | Statement::Revoke(Revoke {
                privileges: _,
                objects,
                grantees: _,
                granted_by: _,
                cascade: _,
            }) => self.grant_objects(objects.as_ref()),
            Statement::StartTransaction {
                modes: _,
                begin: _,
                transaction: _,
                modifier: _,
                statements,
                exception,
                has_end_keyword: _,
            } => {
                if !statements.is_empty() || exception.is_some() {
                    self.not_understood("a BEGIN block");
                }
            }
            Statement::Commit {
                chain: _,
                end: _,
                modifier: _,
            }
            | Statement::Rollback {
                chain: _,
                savepoint: _,
            } => {}
            Statement::ExportData(export) => {
                for option in &export.options {
                    if let sqlparser::ast::SqlOption::KeyValue { key: _, value } = option {
                        self.expr(value);
                    }
                }
                self.query(&export.query);
            }
            Statement::CreateFunction(create) => {
                self.modifies(name);
                self.table(&create.name, Role::Written);
                self.not_understood("CREATE FUNCTION");
            }
            Statement::CreateMacro {
                or_replace: _,
                temporary: _,
                name: macro_name,
                args: _,
                definition: _,
            } => {
                self.modifies(name);
                self.table(macro_name, Role::Written);
                self.not_understood("CREATE MACRO");
            }
            Statement::CreateVirtualTable {
                name: table,
                if_not_exists: _,
                module_name: _,
                module_args: _,
            } => {
                self.modifies(name);
                self.table(table, Role::Written);
                self.not_understood("CREATE VIRTUAL TABLE");
            }
            Statement::CreateStage {
                or_replace: _,
                temporary: _,
                if_not_exists: _,
                name: stage,
                stage_params: _,
                directory_table_params: _,
                file_format: _,
                copy_options: _,
                comment: _,
            } => {
                self.modifies(name);
                self.table(stage, Role::Written);
                self.not_understood("CREATE STAGE");
            }
            Statement::CreateSchema {
                schema_name,
                if_not_exists: _,
                with: _,
                options: _,
                default_collate_spec: _,
                clone: _,
            } => {
                self.modifies(name);
                match schema_name {
                    SchemaName::Simple(name) | SchemaName::NamedAuthorization(name, _) => {
                        self.table(name, Role::Written);
                    }
                    SchemaName::UnnamedAuthorization(_) => {}
                }
                self.not_understood("CREATE SCHEMA");
            }
            Statement::Set(_)
            | Statement::Msck(_)
            | Statement::Install { .. }
            | Statement::Load { .. }
            | Statement::Directory { .. }
            | Statement::Case(_)
            | Statement::If(_)
            | Statement::While(_)
            | Statement::Raise(_)
            | Statement::Call(_)
            | Statement::Copy { .. }
            | Statement::CopyIntoSnowflake { .. }
            | Statement::Open(_)
            | Statement::Close { .. }
            | Statement::CreateRole(_)
            | Statement::CreateSecret { .. }
            | Statement::CreateServer(_)
            | Statement::CreatePolicy(_)
            | Statement::CreateConnector(_)
            | Statement::CreateOperator(_)
            | Statement::CreateOperatorFamily(_)
            | Statement::CreateOperatorClass(_)
            | Statement::AlterSchema(_)
            | Statement::AlterIndex { .. }
            | Statement::AlterView { .. }
            | Statement::AlterFunction(_)
            | Statement::AlterType(_)
            | Statement::AlterCollation(_)
            | Statement::AlterOperator(_)
            | Statement::AlterOperatorFamily(_)
            | Statement::AlterOperatorClass(_)
            | Statement::AlterRole { .. }
            | Statement::AlterPolicy(_)
            | Statement::AlterConnector { .. }
            | Statement::AlterSession { .. }
            | Statement::AttachDatabase { .. }
            | Statement::AttachDuckDBDatabase { .. }
            | Statement::DetachDuckDBDatabase { .. }
            | Statement::DropFunction(_)
            | Statement::DropDomain(_)
            | Statement::DropProcedure { .. }
            | Statement::DropSecret { .. }
            | Statement::DropPolicy(_)
            | Statement::DropConnector { .. }
            | Statement::Declare { .. }
            | Statement::CreateExtension(_)
            | Statement::CreateCollation(_)
            | Statement::DropExtension(_)
            | Statement::DropOperator(_)
            | Statement::DropOperatorFamily(_)
            | Statement::DropOperatorClass(_)
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
            | Statement::Use(_)
            | Statement::CreateDatabase { .. }
            | Statement::CreateTrigger(_)
            | Statement::DropTrigger(_)
            | Statement::CreateProcedure { .. }
            | Statement::Assert { .. }
            | Statement::Deny(_)
            | Statement::Deallocate { .. }
            | Statement::Execute { .. }
            | Statement::Prepare { .. }
            | Statement::Kill { .. }
            | Statement::ExplainTable { .. }
            | Statement::Explain { .. }
            | Statement::Savepoint { .. }
            | Statement::ReleaseSavepoint { .. }
            | Statement::Cache { .. }
            | Statement::UNCache { .. }
            | Statement::CreateSequence { .. }
            | Statement::CreateDomain(_)
            | Statement::CreateType { .. }
            | Statement::Pragma { .. }
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
            | Statement::List(_)
            | Statement::Remove(_)
            | Statement::RaisError { .. }
            | Statement::Throw(_)
            | Statement::Print(_)
            | Statement::WaitFor(_)
            | Statement::Return(_)
            | Statement::CreateUser(_)
            | Statement::AlterUser(_)
            | Statement::Vacuum(_)
            | Statement::Reset(_) => {
                self.modifies(name);
                self.not_understood(format!("a {} statement", name.to_uppercase()));
            }
        }
    }

    fn comment(&mut self, object: CommentObject, name: &ObjectName) {
        match object {
            CommentObject::Table | CommentObject::View | CommentObject::MaterializedView => {
                self.table(name, Role::Written);
            }
            // The table is all but the last part.
            CommentObject::Column => {
                let mut parts = name.0.clone();
                parts.pop();
                self.table(&ObjectName(parts), Role::Written);
            }
            CommentObject::Collation
            | CommentObject::Database
            | CommentObject::Domain
            | CommentObject::Extension
            | CommentObject::Function
            | CommentObject::Index
            | CommentObject::Procedure
            | CommentObject::Role
            | CommentObject::Schema
            | CommentObject::Sequence
            | CommentObject::Type
            | CommentObject::User => self.not_understood(format!("COMMENT ON {object}")),
        }
    }

    fn analyze(&mut self, analyze: &Analyze) {
        let Analyze {
            table_name,
            partitions,
            for_columns: _,
            columns: _,
            cache_metadata: _,
            noscan: _,
            compute_statistics: _,
            has_table_keyword: _,
        } = analyze;
        if let Some(name) = table_name {
            self.table(name, Role::Written);
        }
        self.exprs(partitions.iter().flatten());
    }

    fn grant_objects(&mut self, objects: Option<&GrantObjects>) {
        match objects {
            Some(GrantObjects::Tables(names) | GrantObjects::Views(names)) => {
                for name in names {
                    self.table(name, Role::Written);
                }
            }
            None
            | Some(
                GrantObjects::AllSequencesInSchema { .. }
                | GrantObjects::AllTablesInSchema { .. }
                | GrantObjects::AllViewsInSchema { .. }
                | GrantObjects::AllMaterializedViewsInSchema { .. }
                | GrantObjects::AllExternalTablesInSchema { .. }
                | GrantObjects::AllFunctionsInSchema { .. }
                | GrantObjects::FutureSchemasInDatabase { .. }
                | GrantObjects::FutureTablesInSchema { .. }
                | GrantObjects::FutureViewsInSchema { .. }
                | GrantObjects::FutureExternalTablesInSchema { .. }
                | GrantObjects::FutureMaterializedViewsInSchema { .. }
                | GrantObjects::FutureSequencesInSchema { .. }
                | GrantObjects::Databases(_)
                | GrantObjects::Schemas(_)
                | GrantObjects::Sequences(_)
                | GrantObjects::Warehouses(_)
                | GrantObjects::Integrations(_)
                | GrantObjects::ResourceMonitors(_)
                | GrantObjects::Users(_)
                | GrantObjects::ComputePools(_)
                | GrantObjects::Connections(_)
                | GrantObjects::FailoverGroup(_)
                | GrantObjects::ReplicationGroup(_)
                | GrantObjects::ExternalVolumes(_)
                | GrantObjects::Procedure { .. }
                | GrantObjects::Function { .. },
            ) => self.not_understood("a grant on anything but tables"),
        }
    }
}
