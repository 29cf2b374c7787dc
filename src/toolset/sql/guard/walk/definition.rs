//! CREATE, ALTER, DROP and TRUNCATE of tables, views and indexes.

use sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, ColumnOption,
    ColumnOptionDef, CreateIndex, CreateTable, CreateTableLikeKind, CreateTableOptions, CreateView,
    HiveDistributionStyle, IndexColumn, ObjectName, ObjectType, RenameTableNameKind, Truncate,
};

use super::{Role, Walk};

impl Walk {
    /// Names and the query behind AS are checked; a clause beyond columns is refused, since it can name other tables.
    pub(super) fn create_table(&mut self, create: &CreateTable) {
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

    pub(super) fn create_view(&mut self, create: &CreateView) {
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

    pub(super) fn create_index(&mut self, create: &CreateIndex) {
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

    pub(super) fn alter_table(&mut self, alter: &AlterTable) {
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

    pub(super) fn drop(
        &mut self,
        object: ObjectType,
        names: &[ObjectName],
        table: Option<&ObjectName>,
    ) {
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

    pub(super) fn truncate(&mut self, truncate: &Truncate) {
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
}
