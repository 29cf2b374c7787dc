//! FROM clauses: tables, joins, calls and what makes other rows of them.

use sqlparser::ast::{
    Expr, ExprWithAlias, Ident, Join, JoinConstraint, JoinOperator, JsonTableColumn, Measure,
    ObjectName, PivotValueSource, SymbolDefinition, TableFactor, TableFunctionArgs, TableSample,
    TableSampleBucket, TableSampleKind, TableSampleQuantity, TableVersion, TableWithJoins,
    XmlPassingArgument, XmlTableColumnOption,
};

use super::{Role, Source, Walk};
use crate::toolset::sql::guard::dialect::Dialect;

impl Walk {
    pub(super) fn tables_in(&mut self, from: &[TableWithJoins]) {
        if self.dialect != Dialect::BigQuery {
            for table in from {
                self.table_with_joins(table, Role::Read);
            }
            return;
        }
        // `FROM orders, orders.items`: behind a comma a path that starts with the name of a table before it is an
        // array of that table's rows.
        let mut names: Vec<&Ident> = Vec::new();
        for table in from {
            let TableWithJoins { relation, joins } = table;
            if !is_path_below(relation, &names) {
                self.table_factor(relation, Role::Read);
            }
            for join in joins {
                self.join(join);
            }
            names.extend(name_in_scope(relation));
        }
    }

    pub(super) fn table_with_joins(&mut self, table: &TableWithJoins, role: Role) {
        let TableWithJoins { relation, joins } = table;
        self.table_factor(relation, role);
        for join in joins {
            self.join(join);
        }
    }

    pub(super) fn join(&mut self, join: &Join) {
        let Join {
            relation,
            global: _,
            join_operator,
        } = join;
        match join_operator {
            // ARRAY JOIN names an array column, not a table.
            JoinOperator::ArrayJoin
            | JoinOperator::LeftArrayJoin
            | JoinOperator::InnerArrayJoin => {
                self.array_join(relation);
                return;
            }
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::Left(constraint)
            | JoinOperator::LeftOuter(constraint)
            | JoinOperator::Right(constraint)
            | JoinOperator::RightOuter(constraint)
            | JoinOperator::FullOuter(constraint)
            | JoinOperator::CrossJoin(constraint)
            | JoinOperator::Semi(constraint)
            | JoinOperator::LeftSemi(constraint)
            | JoinOperator::RightSemi(constraint)
            | JoinOperator::Anti(constraint)
            | JoinOperator::LeftAnti(constraint)
            | JoinOperator::RightAnti(constraint)
            | JoinOperator::StraightJoin(constraint) => self.join_constraint(constraint),
            JoinOperator::CrossApply | JoinOperator::OuterApply => {}
            JoinOperator::AsOf {
                match_condition,
                constraint,
            } => {
                self.expr(match_condition);
                self.join_constraint(constraint);
            }
        }
        self.table_factor(relation, Role::Read);
    }

    /// Accepts a plain name only: anything else behind ARRAY JOIN is looked at as a table is.
    fn array_join(&mut self, relation: &TableFactor) {
        let is_column = if let TableFactor::Table {
            name: _,
            alias: _,
            args: None,
            with_hints,
            version: None,
            with_ordinality: false,
            partitions,
            json_path: None,
            sample: None,
            index_hints,
        } = relation
        {
            with_hints.is_empty() && partitions.is_empty() && index_hints.is_empty()
        } else {
            false
        };
        // In other dialects ARRAY is an alias and a join with a table follows.
        if !is_column || self.dialect != Dialect::ClickHouse {
            self.table_factor(relation, Role::Read);
        }
    }

    fn join_constraint(&mut self, constraint: &JoinConstraint) {
        match constraint {
            JoinConstraint::On(expr) => self.expr(expr),
            JoinConstraint::Using(_) | JoinConstraint::Natural | JoinConstraint::None => {}
        }
    }

    pub(super) fn table_factor(&mut self, factor: &TableFactor, role: Role) {
        self.enter(|walk| walk.table_factor_parts(factor, role));
    }

    fn table_factor_parts(&mut self, factor: &TableFactor, role: Role) {
        match factor {
            TableFactor::Table {
                name,
                alias: _,
                args,
                with_hints,
                version,
                with_ordinality: _,
                partitions: _,
                json_path,
                sample,
                index_hints: _,
            } => {
                match args {
                    None => self.table(name, role),
                    Some(TableFunctionArgs { args, settings }) => {
                        self.call_in_from(factor, name, args.len());
                        for arg in args {
                            self.function_arg(arg);
                        }
                        for setting in settings.iter().flatten() {
                            self.setting(setting);
                        }
                    }
                }
                // NOLOCK, INDEX(i) ...: words of the engine, not functions.
                for hint in with_hints {
                    self.table_hint(hint);
                }
                if let Some(version) = version {
                    self.table_version(version);
                }
                if let Some(path) = json_path {
                    self.json_path(path);
                }
                self.sample(sample.as_ref());
            }
            TableFactor::Derived {
                lateral: _,
                subquery,
                alias: _,
                sample,
            } => {
                self.query(subquery);
                self.sample(sample.as_ref());
            }
            TableFactor::TableFunction { expr, alias: _ } => {
                if self.dialect == Dialect::Snowflake {
                    self.findings.has_row_source = true;
                } else {
                    self.unknown_function("table");
                }
                self.expr(expr);
            }
            TableFactor::Function {
                lateral: _,
                name,
                args,
                with_ordinality: _,
                alias: _,
            } => {
                self.call_in_from(factor, name, args.len());
                for arg in args {
                    self.function_arg(arg);
                }
            }
            TableFactor::UNNEST {
                alias: _,
                array_exprs,
                with_offset: _,
                with_offset_alias: _,
                with_ordinality: _,
            } => self.exprs(array_exprs),
            TableFactor::JsonTable {
                json_expr,
                json_path: _,
                columns,
                alias: _,
            } => {
                self.findings
                    .sources
                    .push(Source::Function(factor.to_string()));
                self.expr(json_expr);
                for column in columns {
                    self.json_table_column(column);
                }
            }
            TableFactor::OpenJsonTable {
                json_expr,
                json_path: _,
                columns,
                alias: _,
            } => {
                self.findings
                    .sources
                    .push(Source::Function(factor.to_string()));
                self.expr(json_expr);
                for column in columns {
                    self.data_type(&column.r#type);
                }
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias: _,
            } => {
                self.table_with_joins(table_with_joins, role);
            }
            TableFactor::Pivot {
                table,
                aggregate_functions,
                value_column,
                value_source,
                default_on_null,
                alias: _,
            } => {
                self.table_factor(table, role);
                self.exprs_with_alias(aggregate_functions);
                self.exprs(value_column);
                self.pivot_source(value_source);
                self.exprs(default_on_null);
            }
            TableFactor::Unpivot {
                table,
                value,
                name: _,
                columns,
                null_inclusion: _,
                alias: _,
            } => {
                self.table_factor(table, role);
                self.expr(value);
                self.exprs_with_alias(columns);
            }
            TableFactor::MatchRecognize {
                table,
                partition_by,
                order_by,
                measures,
                rows_per_match: _,
                after_match_skip: _,
                pattern: _,
                symbols,
                alias: _,
            } => {
                self.table_factor(table, role);
                self.exprs(partition_by);
                for item in order_by {
                    self.order_by_expr(item);
                }
                for Measure { expr, alias: _ } in measures {
                    self.expr(expr);
                }
                for SymbolDefinition {
                    symbol: _,
                    definition,
                } in symbols
                {
                    self.expr(definition);
                }
            }
            TableFactor::XmlTable {
                namespaces,
                row_expression,
                passing,
                columns,
                alias: _,
            } => {
                self.findings
                    .sources
                    .push(Source::Function(factor.to_string()));
                for namespace in namespaces {
                    self.expr(&namespace.uri);
                }
                self.expr(row_expression);
                for XmlPassingArgument {
                    expr,
                    alias: _,
                    by_value: _,
                } in &passing.arguments
                {
                    self.expr(expr);
                }
                for column in columns {
                    match &column.option {
                        XmlTableColumnOption::NamedInfo {
                            r#type,
                            path,
                            default,
                            nullable: _,
                        } => {
                            self.data_type(r#type);
                            self.exprs(path);
                            self.exprs(default);
                        }
                        XmlTableColumnOption::ForOrdinality => {}
                    }
                }
            }
            TableFactor::SemanticView { .. } => self.not_understood("SEMANTIC_VIEW"),
        }
    }

    /// `unnest(...)` and Snowflake's `FLATTEN` make rows of their arguments and read nothing else.
    fn call_in_from(&mut self, factor: &TableFactor, name: &ObjectName, args: usize) {
        let reads_arguments_only = match name.0.as_slice() {
            [part] => part.as_ident().is_some_and(|ident| {
                ident.quote_style.is_none()
                    && (ident.value.eq_ignore_ascii_case("unnest")
                        || (self.dialect == Dialect::Snowflake
                            && ident.value.eq_ignore_ascii_case("flatten")))
            }),
            _ => false,
        };
        if !reads_arguments_only {
            self.table_function(name, args, factor.to_string());
        }
    }

    fn table_hint(&mut self, hint: &Expr) {
        if let Expr::Function(function) = hint {
            self.function_arguments(&function.args);
        } else {
            self.expr(hint);
        }
    }

    fn table_version(&mut self, version: &TableVersion) {
        match version {
            TableVersion::ForSystemTimeAsOf(expr)
            | TableVersion::TimestampAsOf(expr)
            | TableVersion::VersionAsOf(expr) => self.expr(expr),
            TableVersion::Function(expr) => self.version_function(expr),
            TableVersion::Changes { changes, at, end } => {
                self.version_function(changes);
                self.version_function(at);
                if let Some(end) = end {
                    self.version_function(end);
                }
            }
        }
    }

    /// Snowflake's AT(...), BEFORE(...) and CHANGES(...) are clauses in the form of calls.
    fn version_function(&mut self, expr: &Expr) {
        if let Expr::Function(function) = expr {
            self.function_arguments(&function.args);
        } else {
            self.expr(expr);
        }
    }

    fn sample(&mut self, sample: Option<&TableSampleKind>) {
        match sample {
            None => {}
            Some(
                TableSampleKind::BeforeTableAlias(sample)
                | TableSampleKind::AfterTableAlias(sample),
            ) => self.table_sample(sample),
        }
    }

    pub(super) fn table_sample(&mut self, sample: &TableSample) {
        let TableSample {
            modifier: _,
            name: _,
            quantity,
            seed: _,
            bucket,
            offset,
        } = sample;
        if let Some(TableSampleQuantity {
            parenthesized: _,
            value,
            unit: _,
        }) = quantity
        {
            self.expr(value);
        }
        if let Some(TableSampleBucket {
            bucket: _,
            total: _,
            on,
        }) = bucket
        {
            self.exprs(on);
        }
        self.exprs(offset);
    }

    fn json_table_column(&mut self, column: &JsonTableColumn) {
        match column {
            JsonTableColumn::Named(named) => self.data_type(&named.r#type),
            JsonTableColumn::ForOrdinality(_) => {}
            JsonTableColumn::Nested(nested) => {
                for column in &nested.columns {
                    self.enter(|walk| walk.json_table_column(column));
                }
            }
        }
    }

    pub(super) fn exprs_with_alias(&mut self, items: &[ExprWithAlias]) {
        for ExprWithAlias { expr, alias: _ } in items {
            self.expr(expr);
        }
    }

    pub(super) fn pivot_source(&mut self, source: &PivotValueSource) {
        match source {
            PivotValueSource::List(items) => self.exprs_with_alias(items),
            PivotValueSource::Any(items) => {
                for item in items {
                    self.order_by_expr(item);
                }
            }
            PivotValueSource::Subquery(query) => self.query(query),
        }
    }
}

/// The name by which the rest of a FROM clause knows a table.
fn name_in_scope(factor: &TableFactor) -> Option<&Ident> {
    let TableFactor::Table {
        name,
        alias,
        args: None,
        ..
    } = factor
    else {
        return None;
    };
    match alias {
        Some(alias) => Some(&alias.name),
        None => name.0.last()?.as_ident(),
    }
}

/// Whether a FROM item is `name.column` with `name` one of `names`, all without quotes.
fn is_path_below(factor: &TableFactor, names: &[&Ident]) -> bool {
    let TableFactor::Table {
        name,
        args: None,
        version: None,
        json_path: None,
        ..
    } = factor
    else {
        return false;
    };
    let [first, _, ..] = name.0.as_slice() else {
        return false;
    };
    first.as_ident().is_some_and(|first| {
        first.quote_style.is_none()
            && names.iter().any(|name| {
                name.quote_style.is_none() && name.value.eq_ignore_ascii_case(&first.value)
            })
    })
}
