//! Queries: their clauses, their FROM items and the scope of their WITH clauses.

use sqlparser::ast::{
    ConnectByKind, Cte, Distinct, Expr, ExprWithAlias, ExprWithAliasAndOrderBy, Fetch, GroupByExpr,
    GroupByWithModifier, Ident, Interpolate, InterpolateExpr, Join, JoinConstraint, JoinOperator,
    JsonTableColumn, LateralView, LimitClause, LockClause, Measure, NamedWindowDefinition,
    NamedWindowExpr, Offset, OrderBy, OrderByExpr, OrderByKind, Parens, PipeOperator,
    PivotValueSource, Query, ReplaceSelectElement, Select, SelectInto, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, Setting, Statement, SymbolDefinition, Table,
    TableFactor, TableFunctionArgs, TableSample, TableSampleBucket, TableSampleKind,
    TableSampleQuantity, TableVersion, TableWithJoins, Top, TopQuantity, Values,
    WildcardAdditionalOptions, With, WithFill, XmlPassingArgument, XmlTableColumnOption,
};

use super::{Role, Source, Walk};
use crate::toolset::sql::guard::dialect::Dialect;

impl Walk {
    pub(super) fn query(&mut self, query: &Query) {
        self.enter(|walk| walk.query_parts(query));
    }

    fn query_parts(&mut self, query: &Query) {
        let Query {
            with,
            body,
            order_by,
            limit_clause,
            fetch,
            locks,
            for_clause: _,
            settings,
            format_clause: _,
            pipe_operators,
        } = query;
        let scope = self.scopes.len();
        if let Some(with) = with {
            self.with(with);
        }
        self.set_expr(body);
        if let Some(order_by) = order_by {
            self.order_by(order_by);
        }
        if let Some(limit) = limit_clause {
            self.limit(limit);
        }
        if let Some(Fetch {
            with_ties: _,
            percent: _,
            quantity,
        }) = fetch
        {
            self.exprs(quantity);
        }
        for LockClause {
            lock_type: _,
            of,
            nonblock: _,
        } in locks
        {
            if let Some(table) = of {
                self.table(table, Role::Read);
            }
        }
        for Setting { key: _, value } in settings.iter().flatten() {
            self.expr(value);
        }
        for operator in pipe_operators {
            self.pipe_operator(operator);
        }
        self.scopes.truncate(scope);
    }

    /// Opens the scope of a WITH clause; the caller closes it.
    ///
    /// Inside a clause only those before it are in sight, and itself when RECURSIVE.
    fn with(&mut self, with: &With) {
        let With {
            with_token: _,
            recursive,
            cte_tables,
        } = with;
        let mut names: Vec<Ident> = Vec::with_capacity(cte_tables.len());
        for Cte {
            alias,
            query,
            from,
            materialized: _,
            closing_paren_token: _,
        } in cte_tables
        {
            if from.is_some() {
                self.not_understood("FROM behind a WITH clause");
            }
            let mut in_sight = names.clone();
            if *recursive {
                in_sight.push(alias.name.clone());
            }
            self.scopes.push(in_sight);
            self.query(query);
            self.scopes.pop();
            names.push(alias.name.clone());
        }
        self.scopes.push(names);
    }

    fn set_expr(&mut self, body: &SetExpr) {
        // A chain of set operations leans to the left, as long as the statement.
        let mut body = body;
        let mut right_sides = Vec::new();
        while let SetExpr::SetOperation {
            left,
            op: _,
            set_quantifier: _,
            right,
        } = body
        {
            right_sides.push(right);
            body = left;
        }
        self.enter(|walk| walk.set_operand(body));
        while let Some(right) = right_sides.pop() {
            self.enter(|walk| walk.set_expr(right));
        }
    }

    fn set_operand(&mut self, body: &SetExpr) {
        match body {
            SetExpr::Select(select) => self.select(select),
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation {
                left,
                op: _,
                set_quantifier: _,
                right,
            } => {
                self.set_expr(left);
                self.set_expr(right);
            }
            SetExpr::Values(values) => self.values(values),
            SetExpr::Insert(statement)
            | SetExpr::Update(statement)
            | SetExpr::Delete(statement)
            | SetExpr::Merge(statement) => self.data_change(statement),
            SetExpr::Table(table) => self.table_command(table),
        }
    }

    fn data_change(&mut self, statement: &Statement) {
        self.enter(|walk| walk.statement(statement));
    }

    /// `TABLE name`.
    fn table_command(&mut self, table: &Table) {
        let Table {
            table_name,
            schema_name,
        } = table;
        let Some(name) = table_name else {
            self.not_understood("TABLE without a name");
            return;
        };
        let ident = Ident::new(name.clone());
        match schema_name {
            None if self.names_a_cte(&ident) => {}
            schema => {
                self.findings.sources.push(Source::Table(super::TableRef {
                    catalog: None,
                    schema: schema.clone(),
                    name: name.clone(),
                    ..super::TableRef::default()
                }));
            }
        }
    }

    pub(super) fn values(&mut self, values: &Values) {
        let Values {
            explicit_row: _,
            value_keyword: _,
            rows,
        } = values;
        for Parens {
            opening_token: _,
            content,
            closing_token: _,
        } in rows
        {
            self.exprs(content);
        }
    }

    fn select(&mut self, select: &Select) {
        let Select {
            select_token: _,
            optimizer_hints: _,
            distinct,
            select_modifiers: _,
            top,
            top_before_distinct: _,
            projection,
            exclude: _,
            into,
            from,
            lateral_views,
            prewhere,
            selection,
            connect_by,
            group_by,
            cluster_by,
            distribute_by,
            sort_by,
            having,
            named_window,
            qualify,
            window_before_qualify: _,
            value_table_mode: _,
            flavor: _,
        } = select;
        match distinct {
            Some(Distinct::On(exprs)) => self.exprs(exprs),
            Some(Distinct::All | Distinct::Distinct) | None => {}
        }
        if let Some(Top {
            with_ties: _,
            percent: _,
            quantity,
        }) = top
        {
            if self.dialect == Dialect::Generic {
                self.not_understood("TOP");
            }
            match quantity {
                Some(TopQuantity::Expr(expr)) => self.expr(expr),
                Some(TopQuantity::Constant(_)) | None => {}
            }
        }
        self.select_items(projection);
        if let Some(SelectInto {
            temporary: _,
            unlogged: _,
            table: _,
            name,
        }) = into
        {
            self.modifies("Into");
            self.table(name, Role::Written);
        }
        self.tables_in(from);
        for LateralView {
            lateral_view,
            lateral_view_name: _,
            lateral_col_alias: _,
            outer: _,
        } in lateral_views
        {
            self.expr(lateral_view);
        }
        self.exprs(prewhere);
        self.exprs(selection);
        for kind in connect_by {
            match kind {
                ConnectByKind::ConnectBy {
                    connect_token: _,
                    nocycle: _,
                    relationships,
                } => {
                    self.exprs(relationships);
                }
                ConnectByKind::StartWith {
                    start_token: _,
                    condition,
                } => self.expr(condition),
            }
        }
        self.group_by(group_by);
        self.exprs(cluster_by);
        self.exprs(distribute_by);
        for item in sort_by {
            self.order_by_expr(item);
        }
        self.exprs(having);
        for NamedWindowDefinition(_, window) in named_window {
            match window {
                NamedWindowExpr::NamedWindow(_) => {}
                NamedWindowExpr::WindowSpec(spec) => self.window_spec(spec),
            }
        }
        self.exprs(qualify);
    }

    fn tables_in(&mut self, from: &[TableWithJoins]) {
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

    pub(super) fn select_items(&mut self, items: &[SelectItem]) {
        for item in items {
            match item {
                SelectItem::UnnamedExpr(expr)
                | SelectItem::ExprWithAlias { expr, alias: _ }
                | SelectItem::ExprWithAliases { expr, aliases: _ } => self.expr(expr),
                SelectItem::QualifiedWildcard(kind, options) => {
                    match kind {
                        SelectItemQualifiedWildcardKind::ObjectName(_) => {}
                        SelectItemQualifiedWildcardKind::Expr(expr) => self.expr(expr),
                    }
                    self.wildcard_options(options);
                }
                SelectItem::Wildcard(options) => self.wildcard_options(options),
            }
        }
    }

    pub(super) fn wildcard_options(&mut self, options: &WildcardAdditionalOptions) {
        let WildcardAdditionalOptions {
            wildcard_token: _,
            opt_ilike: _,
            opt_exclude: _,
            opt_except: _,
            opt_replace,
            opt_rename: _,
            opt_alias: _,
        } = options;
        for item in opt_replace.iter().flat_map(|replace| &replace.items) {
            let ReplaceSelectElement {
                expr,
                column_name: _,
                as_keyword: _,
            } = &**item;
            self.expr(expr);
        }
    }

    fn group_by(&mut self, group_by: &GroupByExpr) {
        let modifiers = match group_by {
            GroupByExpr::All(modifiers) => modifiers,
            GroupByExpr::Expressions(exprs, modifiers) => {
                for expr in exprs {
                    self.group_by_item(expr);
                }
                modifiers
            }
        };
        for modifier in modifiers {
            match modifier {
                GroupByWithModifier::Rollup
                | GroupByWithModifier::Cube
                | GroupByWithModifier::Totals => {}
                GroupByWithModifier::GroupingSets(expr) => self.expr(expr),
            }
        }
    }

    /// ROLLUP and CUBE are words of the clause, which some dialects' parsers take for functions.
    fn group_by_item(&mut self, expr: &Expr) {
        if let Expr::Function(function) = expr
            && let [name] = function.name.0.as_slice()
            && let Some(name) = name.as_ident()
            && name.quote_style.is_none()
            && ["ROLLUP", "CUBE"].contains(&name.value.to_uppercase().as_str())
        {
            self.function_arguments(&function.args);
        } else {
            self.expr(expr);
        }
    }

    fn order_by(&mut self, order_by: &OrderBy) {
        let OrderBy { kind, interpolate } = order_by;
        match kind {
            OrderByKind::All(_) => {}
            OrderByKind::Expressions(items) => {
                for item in items {
                    self.order_by_expr(item);
                }
            }
        }
        if let Some(Interpolate { exprs }) = interpolate {
            for InterpolateExpr { column: _, expr } in exprs.iter().flatten() {
                self.exprs(expr);
            }
        }
    }

    pub(super) fn order_by_expr(&mut self, item: &OrderByExpr) {
        let OrderByExpr {
            expr,
            options: _,
            with_fill,
        } = item;
        self.expr(expr);
        if let Some(WithFill { from, to, step }) = with_fill {
            self.exprs(from);
            self.exprs(to);
            self.exprs(step);
        }
    }

    fn limit(&mut self, limit: &LimitClause) {
        match limit {
            LimitClause::LimitOffset {
                limit,
                offset,
                limit_by,
            } => {
                self.exprs(limit);
                if let Some(Offset { value, rows: _ }) = offset {
                    self.expr(value);
                }
                self.exprs(limit_by);
            }
            LimitClause::OffsetCommaLimit { offset, limit } => self.exprs([offset, limit]),
        }
    }

    pub(super) fn table_with_joins(&mut self, table: &TableWithJoins, role: Role) {
        let TableWithJoins { relation, joins } = table;
        self.table_factor(relation, role);
        for join in joins {
            self.join(join);
        }
    }

    fn join(&mut self, join: &Join) {
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
        let is_column = match relation {
            TableFactor::Table {
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
            } => with_hints.is_empty() && partitions.is_empty() && index_hints.is_empty(),
            _ => false,
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
                        for Setting { key: _, value } in settings.iter().flatten() {
                            self.expr(value);
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
                match self.dialect {
                    Dialect::Snowflake => self.findings.has_row_source = true,
                    _ => self.unknown_function("table"),
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
    fn call_in_from(
        &mut self,
        factor: &TableFactor,
        name: &sqlparser::ast::ObjectName,
        args: usize,
    ) {
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

    fn table_hint(&mut self, hint: &sqlparser::ast::Expr) {
        use sqlparser::ast::{Expr, FunctionArguments};
        match hint {
            Expr::Identifier(_) => {}
            Expr::Function(function) => match &function.args {
                FunctionArguments::None => {}
                FunctionArguments::List(list) => {
                    for arg in &list.args {
                        self.function_arg(arg);
                    }
                }
                FunctionArguments::Subquery(query) => self.query(query),
            },
            other => self.expr(other),
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
    fn version_function(&mut self, expr: &sqlparser::ast::Expr) {
        match expr {
            sqlparser::ast::Expr::Function(function) => self.function_arguments(&function.args),
            other => self.expr(other),
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

    fn table_sample(&mut self, sample: &TableSample) {
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

    fn exprs_with_alias(&mut self, items: &[ExprWithAlias]) {
        for ExprWithAlias { expr, alias: _ } in items {
            self.expr(expr);
        }
    }

    fn pivot_source(&mut self, source: &PivotValueSource) {
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

    fn pipe_operator(&mut self, operator: &PipeOperator) {
        match operator {
            PipeOperator::Limit { expr, offset } => {
                self.expr(expr);
                self.exprs(offset);
            }
            PipeOperator::Where { expr } => self.expr(expr),
            PipeOperator::OrderBy { exprs } => {
                for item in exprs {
                    self.order_by_expr(item);
                }
            }
            PipeOperator::Select { exprs } | PipeOperator::Extend { exprs } => {
                self.select_items(exprs);
            }
            PipeOperator::Set { assignments } => self.assignments(assignments),
            PipeOperator::Drop { columns: _ }
            | PipeOperator::As { alias: _ }
            | PipeOperator::Rename { mappings: _ }
            | PipeOperator::Unpivot {
                value_column: _,
                name_column: _,
                unpivot_columns: _,
                alias: _,
            } => {}
            PipeOperator::Aggregate {
                full_table_exprs,
                group_by_expr,
            } => {
                for ExprWithAliasAndOrderBy { expr, order_by: _ } in
                    full_table_exprs.iter().chain(group_by_expr)
                {
                    self.expr(&expr.expr);
                }
            }
            PipeOperator::TableSample { sample } => self.table_sample(sample),
            PipeOperator::Union {
                set_quantifier: _,
                queries,
            }
            | PipeOperator::Intersect {
                set_quantifier: _,
                queries,
            }
            | PipeOperator::Except {
                set_quantifier: _,
                queries,
            } => {
                for query in queries {
                    self.query(query);
                }
            }
            // A table function that is handed the rows before it.
            PipeOperator::Call { function, alias: _ } => {
                self.findings
                    .sources
                    .push(Source::Function(function.to_string()));
                self.function(function);
            }
            PipeOperator::Pivot {
                aggregate_functions,
                value_column: _,
                value_source,
                alias: _,
            } => {
                self.exprs_with_alias(aggregate_functions);
                self.pivot_source(value_source);
            }
            PipeOperator::Join(join) => self.join(join),
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
