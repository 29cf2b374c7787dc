//! INSERT, UPDATE, DELETE and MERGE.

use sqlparser::ast::{
    Assignment, ConflictTarget, Delete, DoUpdate, FromTable, Insert, Merge, MergeAction,
    MergeClause, MergeInsertExpr, MergeInsertKind, MergeUpdateExpr, MultiTableInsertIntoClause,
    OnConflict, OnConflictAction, OnInsert, OutputClause, SelectInto, TableObject, Update,
    UpdateTableFromKind,
};

use super::{Role, Walk};

impl Walk {
    pub(super) fn insert(&mut self, insert: &Insert) {
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

    pub(super) fn update(&mut self, update: &Update) {
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

    pub(super) fn delete(&mut self, delete: &Delete) {
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

    pub(super) fn merge(&mut self, merge: &Merge) {
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
}
