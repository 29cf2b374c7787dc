//! Statements other than queries. Those that are not walked are refused by name.

use sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, Analyze, Assignment, ColumnDef,
    ColumnOption, ColumnOptionDef, CommentObject, ConflictTarget, CreateIndex, CreateTable,
    CreateTableLikeKind, CreateTableOptions, CreateView, Delete, DoUpdate, FromTable, Grant,
    GrantObjects, HiveDistributionStyle, IndexColumn, Insert, Merge, MergeAction, MergeClause,
    MergeInsertExpr, MergeInsertKind, MergeUpdateExpr, MultiTableInsertIntoClause, ObjectName,
    ObjectType, OnConflict, OnConflictAction, OnInsert, OutputClause, RenameTableNameKind, Revoke,
    SchemaName, SelectInto, Statement, TableObject, Truncate, Update, UpdateTableFromKind,
};

use super::{Role, Walk};

impl Walk {
    /// The statement itself, as opposed to one inside another.
    pub(super) fn top(&mut self, statement: &Statement) {
        match statement {
            Statement::ExplainTable {
                describe_alias: _,
                hive_format: _,
                has_table_keyword: _,
                table_name,
            } => self.table(table_name, Role::Read),
            Statement::Explain {
                describe_alias: _,
                analyze: _,
                verbose: _,
                query_plan: _,
                estimate: _,
                statement,
                format: _,
                options: _,
            } => self.enter(|walk| walk.statement(statement)),
            other => self.statement(other),
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

    fn insert(&mut self, insert: &Insert) {
        let Insert {
            insert_token: _,
            optimizer_hints: _,
            or: _,
            ignore: _,
            into: _,
            table,
            table_alias: _,
            columns: _,
            overwrite: _,
            source,
            assignments,
            partitioned,
            after_columns: _,
            has_table_keyword: _,
            on,
            returning,
            output,
            replace_into: _,
            priority: _,
            insert_alias: _,
            settings,
            format_clause,
            multi_table_insert_type: _,
            multi_table_into_clauses,
            multi_table_when_clauses,
            multi_table_else_clause,
        } = insert;
        match table {
            TableObject::TableName(name) => self.table(name, Role::Written),
            TableObject::TableFunction(function) => {
                self.not_understood(format!("INSERT INTO FUNCTION {}", function.name));
            }
            TableObject::TableQuery(query) => {
                self.query(query);
                self.not_understood("INSERT INTO a query");
            }
        }
        if let Some(source) = source {
            self.query(source);
        }
        self.assignments(assignments);
        self.exprs(partitioned.iter().flatten());
        match on {
            None => {}
            Some(OnInsert::DuplicateKeyUpdate(assignments)) => self.assignments(assignments),
            Some(OnInsert::OnConflict(OnConflict {
                conflict_target,
                action,
            })) => {
                match conflict_target {
                    None | Some(ConflictTarget::Columns(_) | ConflictTarget::OnConstraint(_)) => {}
                }
                match action {
                    OnConflictAction::DoNothing => {}
                    OnConflictAction::DoUpdate(DoUpdate {
                        assignments,
                        selection,
                    }) => {
                        self.assignments(assignments);
                        self.exprs(selection);
                    }
                }
            }
            // The enum is marked as open: what it may hold one day is refused.
            Some(other) => self.not_understood(format!("INSERT ...{other}")),
        }
        if let Some(items) = returning {
            self.select_items(items);
        }
        self.output(output.as_ref());
        if settings.is_some() || format_clause.is_some() {
            self.not_understood("INSERT with SETTINGS or FORMAT");
        }
        let into_clauses = multi_table_into_clauses
            .iter()
            .chain(
                multi_table_when_clauses
                    .iter()
                    .flat_map(|when| &when.into_clauses),
            )
            .chain(multi_table_else_clause.iter().flatten());
        for MultiTableInsertIntoClause {
            table_name,
            columns: _,
            values: _,
        } in into_clauses
        {
            self.table(table_name, Role::Written);
            self.not_understood("INSERT into several tables");
        }
    }

    pub(super) fn assignments(&mut self, assignments: &[Assignment]) {
        for Assignment { target: _, value } in assignments {
            self.expr(value);
        }
    }

    fn output(&mut self, output: Option<&OutputClause>) {
        match output {
            None => {}
            Some(OutputClause::Output {
                output_token: _,
                select_items,
                into_table,
            }) => {
                self.select_items(select_items);
                if let Some(SelectInto {
                    temporary: _,
                    unlogged: _,
                    table: _,
                    name,
                }) = into_table
                {
                    self.table(name, Role::Written);
                }
            }
            Some(OutputClause::Returning {
                returning_token: _,
                select_items,
            }) => {
                self.select_items(select_items);
            }
        }
    }

    fn update(&mut self, update: &Update) {
        let Update {
            update_token: _,
            optimizer_hints: _,
            table,
            assignments,
            from,
            selection,
            returning,
            output,
            or: _,
            order_by,
            limit,
        } = update;
        self.table_with_joins(table, Role::Written);
        self.assignments(assignments);
        match from {
            None => {}
            Some(
                UpdateTableFromKind::BeforeSet(tables) | UpdateTableFromKind::AfterSet(tables),
            ) => {
                for table in tables {
                    self.table_with_joins(table, Role::Read);
                }
            }
        }
        self.exprs(selection);
        if let Some(items) = returning {
            self.select_items(items);
        }
        self.output(output.as_ref());
        for item in order_by {
            self.order_by_expr(item);
        }
        self.exprs(limit);
    }

    fn delete(&mut self, delete: &Delete) {
        let Delete {
            delete_token: _,
            optimizer_hints: _,
            tables,
            from,
            using,
            selection,
            returning,
            output,
            order_by,
            limit,
        } = delete;
        for table in tables {
            self.table(table, Role::Written);
        }
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = from;
        let role = if tables.is_empty() {
            Role::Written
        } else {
            Role::Read
        };
        for table in from {
            self.table_with_joins(table, role);
        }
        for table in using.iter().flatten() {
            self.table_with_joins(table, Role::Read);
        }
        self.exprs(selection);
        if let Some(items) = returning {
            self.select_items(items);
        }
        self.output(output.as_ref());
        for item in order_by {
            self.order_by_expr(item);
        }
        self.exprs(limit);
    }

    fn merge(&mut self, merge: &Merge) {
        let Merge {
            merge_token: _,
            optimizer_hints: _,
            into: _,
            table,
            source,
            on,
            clauses,
            output,
        } = merge;
        self.table_factor(table, Role::Written);
        self.table_factor(source, Role::Read);
        self.expr(on);
        for MergeClause {
            when_token: _,
            clause_kind: _,
            predicate,
            action,
        } in clauses
        {
            self.exprs(predicate);
            match action {
                MergeAction::Insert(MergeInsertExpr {
                    insert_token: _,
                    columns: _,
                    kind_token: _,
                    kind,
                    insert_predicate,
                }) => {
                    match kind {
                        MergeInsertKind::Values(values) => self.values(values),
                        MergeInsertKind::Row => {}
                    }
                    self.exprs(insert_predicate);
                }
                MergeAction::Update(MergeUpdateExpr {
                    update_token: _,
                    assignments,
                    update_predicate,
                    delete_predicate,
                }) => {
                    self.assignments(assignments);
                    self.exprs(update_predicate);
                    self.exprs(delete_predicate);
                }
                MergeAction::Delete { delete_token: _ } => {}
            }
        }
        self.output(output.as_ref());
    }

    /// Names and the query behind AS are checked; a clause beyond columns is refused, since it can name other tables.
    fn create_table(&mut self, create: &CreateTable) {
        let CreateTable {
            or_replace: _,
            temporary: _,
            external,
            dynamic,
            global: _,
            if_not_exists: _,
            transient: _,
            volatile: _,
            iceberg,
            snapshot,
            name,
            columns,
            constraints,
            hive_distribution,
            hive_formats,
            table_options,
            file_format,
            location,
            query,
            without_rowid: _,
            like,
            clone,
            version,
            comment: _,
            on_commit: _,
            on_cluster,
            primary_key,
            order_by,
            partition_by,
            cluster_by,
            clustered_by,
            inherits,
            partition_of,
            for_values: _,
            strict: _,
            copy_grants: _,
            enable_schema_evolution: _,
            change_tracking: _,
            data_retention_time_in_days: _,
            max_data_extension_time_in_days: _,
            default_ddl_collation: _,
            with_aggregation_policy,
            with_row_access_policy,
            with_storage_lifecycle_policy,
            with_tags,
            external_volume,
            base_location,
            catalog,
            catalog_sync,
            storage_serialization_policy: _,
            target_lag,
            warehouse,
            refresh_mode: _,
            initialize: _,
            require_user: _,
            diststyle: _,
            distkey,
            sortkey,
            backup: _,
        } = create;
        self.table(name, Role::Written);
        for column in columns {
            self.column_def(column);
        }
        if let Some(query) = query {
            self.query(query);
        }
        match like {
            None => {}
            Some(CreateTableLikeKind::Parenthesized(like) | CreateTableLikeKind::Plain(like)) => {
                self.table(&like.name, Role::Read);
            }
        }
        if let Some(clone) = clone {
            self.table(clone, Role::Read);
        }
        for table in inherits.iter().flatten().chain(partition_of) {
            self.table(table, Role::Read);
        }
        let plain_format = hive_formats.as_ref().is_none_or(|format| {
            format.row_format.is_none()
                && format.serde_properties.is_none()
                && format.storage.is_none()
                && format.location.is_none()
        });
        let beyond_columns = *external
            || *dynamic
            || *iceberg
            || *snapshot
            || !constraints.is_empty()
            || !matches!(hive_distribution, HiveDistributionStyle::NONE)
            || !plain_format
            || !matches!(table_options, CreateTableOptions::None)
            || file_format.is_some()
            || location.is_some()
            || version.is_some()
            || on_cluster.is_some()
            || primary_key.is_some()
            || order_by.is_some()
            || partition_by.is_some()
            || cluster_by.is_some()
            || clustered_by.is_some()
            || with_aggregation_policy.is_some()
            || with_row_access_policy.is_some()
            || with_storage_lifecycle_policy.is_some()
            || with_tags.is_some()
            || external_volume.is_some()
            || base_location.is_some()
            || catalog.is_some()
            || catalog_sync.is_some()
            || target_lag.is_some()
            || warehouse.is_some()
            || distkey.is_some()
            || sortkey.is_some();
        if beyond_columns {
            self.not_understood("a clause of CREATE TABLE beyond its columns and query");
        }
    }

    pub(super) fn column_def(&mut self, column: &ColumnDef) {
        let ColumnDef {
            name,
            data_type,
            options,
        } = column;
        // `(LIKE other)` is a copy of another table, which some dialects' parsers take for a column.
        if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("like") {
            self.not_understood("LIKE in a list of columns");
        }
        self.enter(|walk| walk.data_type(data_type));
        for ColumnOptionDef { name: _, option } in options {
            self.column_option(option);
        }
    }

    fn column_option(&mut self, option: &ColumnOption) {
        match option {
            ColumnOption::Null
            | ColumnOption::NotNull
            | ColumnOption::PrimaryKey(_)
            | ColumnOption::Unique(_)
            | ColumnOption::CharacterSet(_)
            | ColumnOption::Collation(_)
            | ColumnOption::Comment(_)
            | ColumnOption::OnConflict(_)
            | ColumnOption::Identity(_)
            | ColumnOption::Invisible => {}
            ColumnOption::Default(expr)
            | ColumnOption::Materialized(expr)
            | ColumnOption::Alias(expr)
            | ColumnOption::OnUpdate(expr) => self.expr(expr),
            ColumnOption::Ephemeral(expr) => self.exprs(expr),
            ColumnOption::Srid(expr) => self.expr(expr),
            ColumnOption::Check(check) => self.expr(&check.expr),
            ColumnOption::Generated {
                generated_as: _,
                sequence_options: _,
                generation_expr,
                generation_expr_mode: _,
                generated_keyword: _,
            } => self.exprs(generation_expr),
            ColumnOption::ForeignKey(key) => self.table(&key.foreign_table, Role::Read),
            ColumnOption::DialectSpecific(tokens) => {
                // AUTO_INCREMENT, AUTOINCREMENT: one word.
                if tokens.len() > 1 {
                    self.not_understood("an option of a column");
                }
            }
            ColumnOption::Options(_) | ColumnOption::Policy(_) | ColumnOption::Tags(_) => {
                self.not_understood("an option of a column");
            }
        }
    }

    fn create_view(&mut self, create: &CreateView) {
        let CreateView {
            or_alter: _,
            or_replace: _,
            materialized: _,
            secure: _,
            name,
            name_before_not_exists: _,
            columns: _,
            query,
            options,
            cluster_by: _,
            comment: _,
            with_no_schema_binding: _,
            if_not_exists: _,
            temporary: _,
            copy_grants: _,
            to,
            params: _,
        } = create;
        self.table(name, Role::Written);
        if let Some(to) = to {
            self.table(to, Role::Written);
        }
        self.query(query);
        if !matches!(options, CreateTableOptions::None) {
            self.not_understood("options of CREATE VIEW");
        }
    }

    fn create_index(&mut self, create: &CreateIndex) {
        let CreateIndex {
            name: _,
            table_name,
            using: _,
            columns,
            unique: _,
            concurrently: _,
            if_not_exists: _,
            include: _,
            nulls_distinct: _,
            with,
            predicate,
            index_options,
            alter_options,
        } = create;
        self.table(table_name, Role::Written);
        for IndexColumn {
            column,
            operator_class: _,
        } in columns
        {
            self.order_by_expr(column);
        }
        self.exprs(predicate);
        if !with.is_empty() || !index_options.is_empty() || !alter_options.is_empty() {
            self.not_understood("options of CREATE INDEX");
        }
    }

    fn alter_table(&mut self, alter: &AlterTable) {
        let AlterTable {
            name,
            if_exists: _,
            only: _,
            operations,
            location,
            on_cluster,
            table_type: _,
            end_token: _,
        } = alter;
        self.table(name, Role::Written);
        if location.is_some() || on_cluster.is_some() {
            self.not_understood("a clause of ALTER TABLE");
        }
        for operation in operations {
            self.alter_operation(operation);
        }
    }

    fn alter_operation(&mut self, operation: &AlterTableOperation) {
        match operation {
            AlterTableOperation::AddColumn {
                column_keyword: _,
                if_not_exists: _,
                column_def,
                column_position: _,
            } => self.column_def(column_def),
            AlterTableOperation::ChangeColumn {
                old_name: _,
                new_name: _,
                data_type,
                options,
                column_position: _,
            }
            | AlterTableOperation::ModifyColumn {
                col_name: _,
                data_type,
                options,
                column_position: _,
            } => {
                self.data_type(data_type);
                for option in options {
                    self.column_option(option);
                }
            }
            AlterTableOperation::AlterColumn { column_name: _, op } => match op {
                AlterColumnOperation::SetNotNull
                | AlterColumnOperation::DropNotNull
                | AlterColumnOperation::DropDefault => {}
                AlterColumnOperation::SetDefault { value } => self.expr(value),
                AlterColumnOperation::SetDataType {
                    data_type,
                    using,
                    had_set: _,
                } => {
                    self.data_type(data_type);
                    self.exprs(using);
                }
                AlterColumnOperation::AddGenerated { .. } => {}
            },
            AlterTableOperation::RenameTable { table_name } => match table_name {
                RenameTableNameKind::As(name) | RenameTableNameKind::To(name) => {
                    self.table(name, Role::Written);
                }
            },
            AlterTableOperation::SwapWith { table_name } => self.table(table_name, Role::Written),
            AlterTableOperation::DropColumn { .. }
            | AlterTableOperation::RenameColumn { .. }
            | AlterTableOperation::DropConstraint { .. }
            | AlterTableOperation::RenameConstraint { .. }
            | AlterTableOperation::DropPrimaryKey { .. }
            | AlterTableOperation::DropForeignKey { .. }
            | AlterTableOperation::DropIndex { .. } => {}
            AlterTableOperation::AddConstraint { .. }
            | AlterTableOperation::AddProjection { .. }
            | AlterTableOperation::DropProjection { .. }
            | AlterTableOperation::MaterializeProjection { .. }
            | AlterTableOperation::ClearProjection { .. }
            | AlterTableOperation::DisableRowLevelSecurity
            | AlterTableOperation::DisableRule { .. }
            | AlterTableOperation::DisableTrigger { .. }
            | AlterTableOperation::AttachPartition { .. }
            | AlterTableOperation::DetachPartition { .. }
            | AlterTableOperation::FreezePartition { .. }
            | AlterTableOperation::UnfreezePartition { .. }
            | AlterTableOperation::EnableAlwaysRule { .. }
            | AlterTableOperation::EnableAlwaysTrigger { .. }
            | AlterTableOperation::EnableReplicaRule { .. }
            | AlterTableOperation::EnableReplicaTrigger { .. }
            | AlterTableOperation::EnableRowLevelSecurity
            | AlterTableOperation::ForceRowLevelSecurity
            | AlterTableOperation::NoForceRowLevelSecurity
            | AlterTableOperation::EnableRule { .. }
            | AlterTableOperation::EnableTrigger { .. }
            | AlterTableOperation::RenamePartitions { .. }
            | AlterTableOperation::ReplicaIdentity { .. }
            | AlterTableOperation::AddPartitions { .. }
            | AlterTableOperation::DropPartitions { .. }
            | AlterTableOperation::SetTblProperties { .. }
            | AlterTableOperation::OwnerTo { .. }
            | AlterTableOperation::ClusterBy { .. }
            | AlterTableOperation::DropClusteringKey
            | AlterTableOperation::AlterSortKey { .. }
            | AlterTableOperation::SuspendRecluster
            | AlterTableOperation::ResumeRecluster
            | AlterTableOperation::Refresh { .. }
            | AlterTableOperation::Suspend
            | AlterTableOperation::Resume
            | AlterTableOperation::Algorithm { .. }
            | AlterTableOperation::Lock { .. }
            | AlterTableOperation::AutoIncrement { .. }
            | AlterTableOperation::ValidateConstraint { .. }
            | AlterTableOperation::SetOptionsParens { .. } => {
                self.not_understood(format!("ALTER TABLE ... {operation}"));
            }
        }
    }

    fn drop(&mut self, object: ObjectType, names: &[ObjectName], table: Option<&ObjectName>) {
        for name in names.iter().chain(table) {
            self.table(name, Role::Written);
        }
        match object {
            ObjectType::Table
            | ObjectType::View
            | ObjectType::MaterializedView
            | ObjectType::Index
            | ObjectType::Sequence => {}
            // DROP DATABASE orders is not what a list with the table `orders` allows.
            ObjectType::Collation
            | ObjectType::Schema
            | ObjectType::Database
            | ObjectType::Role
            | ObjectType::Stage
            | ObjectType::Type
            | ObjectType::User
            | ObjectType::Stream => self.not_understood(format!("DROP {object}")),
        }
    }

    fn truncate(&mut self, truncate: &Truncate) {
        let Truncate {
            table_names,
            partitions,
            table: _,
            if_exists: _,
            identity: _,
            cascade: _,
            on_cluster,
        } = truncate;
        for target in table_names {
            self.table(&target.name, Role::Written);
        }
        self.exprs(partitions.iter().flatten());
        if on_cluster.is_some() {
            self.not_understood("TRUNCATE ... ON CLUSTER");
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
