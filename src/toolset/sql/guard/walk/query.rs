//! Queries: their clauses and the scope of their WITH clauses.

use sqlparser::ast::{
    ConnectByKind, Cte, Distinct, Expr, Fetch, GroupByExpr, GroupByWithModifier, Ident,
    Interpolate, InterpolateExpr, LateralView, LimitClause, LockClause, NamedWindowDefinition,
    NamedWindowExpr, Offset, OrderBy, OrderByExpr, OrderByKind, Parens, Query,
    ReplaceSelectElement, Select, SelectInto, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    SetOperator, Setting, Statement, Table, Top, TopQuantity, Value, Values,
    WildcardAdditionalOptions, With, WithFill,
};

use super::{Role, Source, Walk};
use crate::toolset::sql::guard::dialect::Dialect;

impl Walk {
    pub(super) fn query(&mut self, query: &Query) {
        self.enter(|walk| walk.query_parts(query));
    }

    fn query_parts(&mut self, query: &Query) {
        let scope = self.scopes.len();
        if let Some(with) = &query.with {
            self.with(with);
        }
        self.set_expr(&query.body);
        self.query_tail(query);
        self.scopes.truncate(scope);
    }

    /// What stands behind the body.
    fn query_tail(&mut self, query: &Query) {
        let Query {
            with: _,
            body: _,
            order_by,
            limit_clause,
            fetch,
            locks,
            for_clause: _,
            settings,
            format_clause: _,
            pipe_operators,
        } = query;
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
        for setting in settings.iter().flatten() {
            self.setting(setting);
        }
        for operator in pipe_operators {
            self.pipe_operator(operator);
        }
    }

    /// ClickHouse reads expressions out of some settings' texts (`additional_table_filters`).
    pub(super) fn setting(&mut self, setting: &Setting) {
        let Setting { key, value } = setting;
        let is_plain = matches!(
            value,
            Expr::Value(value) if matches!(value.value, Value::Number(_, _) | Value::Boolean(_))
        );
        if !is_plain {
            self.not_understood(format!("SETTINGS {key} with anything but a number"));
        }
    }

    /// Opens the scope of a WITH clause; the caller closes it.
    ///
    /// Inside a clause only those before it are in sight, and itself in the recursive half when RECURSIVE.
    fn with(&mut self, with: &With) {
        let With {
            with_token: _,
            recursive,
            cte_tables,
        } = with;
        self.scopes.push(Vec::with_capacity(cte_tables.len()));
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
            if *recursive {
                self.recursive_query(query, &alias.name);
            } else {
                self.query(query);
            }
            if let Some(scope) = self.scopes.last_mut() {
                scope.push(alias.name.clone());
            }
        }
    }

    /// `anchor UNION step`: the clause's own name stands for its rows in the step. In the anchor, and in a query that is
    /// no UNION, some engines (DuckDB for one) look for a table of that name.
    fn recursive_query(&mut self, query: &Query, name: &Ident) {
        match (&*query.body, &query.with) {
            (
                SetExpr::SetOperation {
                    left,
                    op: SetOperator::Union,
                    set_quantifier: _,
                    right,
                },
                None,
            ) => {
                self.enter(|walk| walk.set_expr(left));
                self.scopes.push(vec![name.clone()]);
                self.enter(|walk| walk.set_expr(right));
                self.query_tail(query);
                self.scopes.pop();
            }
            _ => self.query(query),
        }
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
}
