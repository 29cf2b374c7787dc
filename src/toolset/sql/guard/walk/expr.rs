//! Expressions.

use sqlparser::ast::{
    AccessExpr, Array, BinaryOperator, CaseWhen, CastFormat, CeilFloorKind, DictionaryField, Expr,
    Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList,
    FunctionArguments, HavingBound, Ident, Interval, JsonPath, JsonPathElem, JsonReturningClause,
    LambdaFunction, LambdaFunctionParameter, LambdaSyntax, ListAggOnOverflow, Map, MapEntry,
    MemberOf, ObjectName, OneOrManyWithParens, Subscript, TypedString, WindowFrame,
    WindowFrameBound, WindowSpec, WindowType,
};

use super::{Role, Walk};
use crate::toolset::sql::guard::dialect::Dialect;

impl Walk {
    pub(super) fn expr(&mut self, expr: &Expr) {
        // A chain of operators leans to the left, as long as the statement: it is walked without recursion.
        let mut expr = expr;
        let mut right_sides = Vec::new();
        while let Expr::BinaryOp { left, op, right } = expr {
            self.operator(op);
            right_sides.push(right);
            expr = left;
        }
        self.enter(|walk| walk.operand(expr));
        while let Some(right) = right_sides.pop() {
            self.enter(|walk| walk.expr(right));
        }
    }

    pub(super) fn exprs<'a>(&mut self, exprs: impl IntoIterator<Item = &'a Expr>) {
        for expr in exprs {
            self.expr(expr);
        }
    }

    fn operand(&mut self, expr: &Expr) {
        match expr {
            Expr::Identifier(ident) => self.column(ident),
            Expr::CompoundIdentifier(idents) => {
                let last = idents.last();
                self.findings.has_table_column |= last.is_some_and(|last| is_bare(last, "table"));
            }
            Expr::CompoundFieldAccess { root, access_chain } => {
                self.expr(root);
                for access in access_chain {
                    match access {
                        AccessExpr::Dot(expr) => self.expr(expr),
                        AccessExpr::Subscript(subscript) => self.subscript(subscript),
                    }
                }
            }
            Expr::JsonAccess { value, path } => {
                self.expr(value);
                self.json_path(path);
            }
            Expr::IsFalse(inner)
            | Expr::IsNotFalse(inner)
            | Expr::IsTrue(inner)
            | Expr::IsNotTrue(inner)
            | Expr::IsNull(inner)
            | Expr::IsNotNull(inner)
            | Expr::IsUnknown(inner)
            | Expr::IsNotUnknown(inner)
            | Expr::Nested(inner)
            | Expr::OuterJoin(inner)
            | Expr::Prior(inner) => self.expr(inner),
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
                self.exprs([&**left, &**right]);
            }
            Expr::IsNormalized {
                expr,
                form: _,
                negated: _,
            } => self.expr(expr),
            Expr::InList {
                expr,
                list,
                negated: _,
            } => {
                self.expr(expr);
                self.exprs(list);
                self.clickhouse_table_in(list);
            }
            Expr::InSubquery {
                expr,
                subquery,
                negated: _,
            } => {
                self.expr(expr);
                self.query(subquery);
            }
            // ClickHouse reads the table behind `IN name`.
            Expr::InUnnest {
                expr,
                array_expr,
                negated: _,
            } => {
                self.exprs([&**expr, &**array_expr]);
            }
            Expr::Between {
                expr,
                negated: _,
                low,
                high,
            } => {
                self.exprs([&**expr, &**low, &**high]);
            }
            Expr::BinaryOp { left, op, right } => {
                self.operator(op);
                self.exprs([&**left, &**right]);
            }
            Expr::Like {
                negated: _,
                any: _,
                expr,
                pattern,
                escape_char: _,
            }
            | Expr::ILike {
                negated: _,
                any: _,
                expr,
                pattern,
                escape_char: _,
            }
            | Expr::SimilarTo {
                negated: _,
                expr,
                pattern,
                escape_char: _,
            }
            | Expr::RLike {
                negated: _,
                expr,
                pattern,
                regexp: _,
            } => {
                self.exprs([&**expr, &**pattern]);
            }
            Expr::AnyOp {
                left,
                compare_op: _,
                right,
                is_some: _,
            } => {
                self.exprs([&**left, &**right]);
            }
            Expr::AllOp {
                left,
                compare_op: _,
                right,
            } => {
                self.expr(left);
                // The original reads ALL over anything but a subquery as a function it does not know.
                if !is_subquery(right) {
                    self.unknown_function("all");
                }
                self.expr(right);
            }
            Expr::UnaryOp { op: _, expr } => self.expr(expr),
            Expr::Convert {
                is_try: _,
                expr,
                data_type,
                charset: _,
                target_before_value: _,
                styles,
            } => {
                self.expr(expr);
                if let Some(data_type) = data_type {
                    self.data_type(data_type);
                }
                self.exprs(styles);
            }
            Expr::Cast {
                kind: _,
                expr,
                data_type,
                array: _,
                format,
            } => {
                self.expr(expr);
                self.data_type(data_type);
                match format {
                    None | Some(CastFormat::Value(_) | CastFormat::ValueAtTimeZone(_, _)) => {}
                }
            }
            Expr::AtTimeZone {
                timestamp,
                time_zone,
            } => {
                self.exprs([&**timestamp, &**time_zone]);
            }
            Expr::Extract {
                field: _,
                syntax: _,
                expr,
            } => self.expr(expr),
            Expr::Ceil { expr, field } | Expr::Floor { expr, field } => {
                self.expr(expr);
                match field {
                    CeilFloorKind::DateTimeField(_) | CeilFloorKind::Scale(_) => {}
                }
            }
            Expr::Position { expr, r#in } => self.exprs([&**expr, &**r#in]),
            Expr::Substring {
                expr,
                substring_from,
                substring_for,
                special: _,
                shorthand: _,
            } => {
                self.expr(expr);
                self.exprs(substring_from.as_deref());
                self.exprs(substring_for.as_deref());
            }
            Expr::Trim {
                trim_where: _,
                trim_what,
                expr,
                trim_characters,
            } => {
                self.exprs(trim_what.as_deref());
                self.expr(expr);
                self.exprs(trim_characters.iter().flatten());
            }
            Expr::Overlay {
                expr,
                overlay_what,
                overlay_from,
                overlay_for,
            } => {
                self.exprs([&**expr, &**overlay_what, &**overlay_from]);
                self.exprs(overlay_for.as_deref());
            }
            Expr::Collate { expr, collation: _ } => self.expr(expr),
            Expr::Value(_) => {}
            Expr::Prefixed { prefix: _, value } => self.expr(value),
            Expr::TypedString(TypedString {
                data_type,
                value: _,
                uses_odbc_syntax: _,
            }) => {
                self.data_type(data_type);
            }
            Expr::Function(function) => self.function(function),
            Expr::Case {
                case_token: _,
                end_token: _,
                operand,
                conditions,
                else_result,
            } => {
                self.exprs(operand.as_deref());
                for CaseWhen { condition, result } in conditions {
                    self.exprs([condition, result]);
                }
                self.exprs(else_result.as_deref());
            }
            Expr::Exists {
                subquery,
                negated: _,
            }
            | Expr::Subquery(subquery) => {
                self.query(subquery);
            }
            Expr::GroupingSets(sets) | Expr::Cube(sets) | Expr::Rollup(sets) => {
                self.exprs(sets.iter().flatten());
            }
            Expr::Tuple(items) => self.exprs(items),
            Expr::Struct { values, fields } => {
                self.exprs(values);
                for field in fields {
                    self.struct_field(field);
                }
            }
            Expr::Named { expr, name: _ } => self.expr(expr),
            Expr::Dictionary(fields) => {
                for DictionaryField { key: _, value } in fields {
                    self.expr(value);
                }
            }
            Expr::Map(Map { entries }) => {
                for MapEntry { key, value } in entries {
                    self.exprs([&**key, &**value]);
                }
            }
            Expr::Array(Array { elem, named: _ }) => self.exprs(elem),
            Expr::Interval(Interval {
                value,
                leading_field: _,
                leading_precision: _,
                last_field: _,
                fractional_seconds_precision: _,
            }) => self.expr(value),
            Expr::MatchAgainst {
                columns: _,
                match_value: _,
                opt_search_modifier: _,
            } => {}
            Expr::Wildcard(_) | Expr::QualifiedWildcard(_, _) => {}
            Expr::Lambda(LambdaFunction {
                params,
                body,
                syntax,
            }) => {
                match syntax {
                    LambdaSyntax::Arrow => {}
                    LambdaSyntax::LambdaKeyword => self.not_understood("LAMBDA x : ..."),
                }
                match params {
                    OneOrManyWithParens::One(param) => self.lambda_parameter(param),
                    OneOrManyWithParens::Many(params) => {
                        for param in params {
                            self.lambda_parameter(param);
                        }
                    }
                }
                self.expr(body);
            }
            Expr::MemberOf(MemberOf { value, array }) => self.exprs([&**value, &**array]),
        }
    }

    /// PostgreSQL's `OPERATOR(schema.+)` calls whatever function stands behind it in that schema.
    fn operator(&mut self, operator: &BinaryOperator) {
        if let BinaryOperator::PGCustomBinaryOperator(names) = operator {
            self.unknown_function(&format!("operator({})", names.join(".")));
        }
    }

    /// To ClickHouse `IN (name)` is `IN name`, and that the table of the name.
    fn clickhouse_table_in(&mut self, list: &[Expr]) {
        let ([only], Dialect::ClickHouse) = (list, self.dialect) else {
            return;
        };
        let mut only = only;
        while let Expr::Nested(inner) = only {
            only = inner;
        }
        let parts = if let Expr::Identifier(ident) = only {
            vec![ident.clone()]
        } else if let Expr::CompoundIdentifier(idents) = only {
            idents.clone()
        } else {
            return;
        };
        self.table(&ObjectName::from(parts), Role::Read);
    }

    /// No query has a column of these names without quotes: the word begins a clause which the parser does not expect
    /// there. PostgreSQL's `SELECT INTO copy FROM orders` makes a table, and is read as a column with an alias.
    fn column(&mut self, ident: &Ident) {
        const CLAUSES: &[&str] = &[
            "INTO",
            "SELECT",
            "FROM",
            "WHERE",
            "HAVING",
            "JOIN",
            "UNION",
            "EXCEPT",
            "INTERSECT",
        ];
        self.findings.has_table_column |= is_bare(ident, "table");
        if is_bare(ident, "into") {
            self.modifies("Into");
        }
        if let Some(word) = CLAUSES.iter().find(|word| is_bare(ident, word)) {
            self.not_understood(format!("{word} as a column"));
        }
    }

    fn lambda_parameter(&mut self, parameter: &LambdaFunctionParameter) {
        let LambdaFunctionParameter { name: _, data_type } = parameter;
        if let Some(data_type) = data_type {
            self.data_type(data_type);
        }
    }

    fn subscript(&mut self, subscript: &Subscript) {
        match subscript {
            Subscript::Index { index } => self.expr(index),
            Subscript::Slice {
                lower_bound,
                upper_bound,
                stride,
            } => {
                self.exprs(lower_bound);
                self.exprs(upper_bound);
                self.exprs(stride);
            }
        }
    }

    pub(super) fn json_path(&mut self, path: &JsonPath) {
        let JsonPath { path } = path;
        for element in path {
            match element {
                JsonPathElem::Dot { key: _, quoted: _ } => {}
                JsonPathElem::Bracket { key } | JsonPathElem::ColonBracket { key } => {
                    self.expr(key);
                }
            }
        }
    }

    pub(super) fn function(&mut self, function: &Function) {
        let Function {
            name,
            uses_odbc_syntax: _,
            parameters,
            args,
            filter,
            null_treatment: _,
            over,
            within_group,
        } = function;
        match args {
            // CURRENT_DATE and its like, which take no brackets.
            FunctionArguments::None => {}
            FunctionArguments::Subquery(_) => self.call(name, 1),
            FunctionArguments::List(list) => self.call(name, list.args.len()),
        }
        self.function_arguments(parameters);
        self.function_arguments(args);
        self.exprs(filter.as_deref());
        match over {
            Some(WindowType::WindowSpec(spec)) => self.window_spec(spec),
            Some(WindowType::NamedWindow(_)) | None => {}
        }
        for item in within_group {
            self.order_by_expr(item);
        }
    }

    pub(super) fn function_arguments(&mut self, arguments: &FunctionArguments) {
        match arguments {
            FunctionArguments::None => {}
            FunctionArguments::Subquery(query) => self.query(query),
            FunctionArguments::List(FunctionArgumentList {
                duplicate_treatment: _,
                args,
                clauses,
            }) => {
                for arg in args {
                    self.function_arg(arg);
                }
                for clause in clauses {
                    self.argument_clause(clause);
                }
            }
        }
    }

    fn argument_clause(&mut self, clause: &FunctionArgumentClause) {
        match clause {
            FunctionArgumentClause::OrderBy(items) => {
                for item in items {
                    self.order_by_expr(item);
                }
            }
            FunctionArgumentClause::Limit(expr) => self.expr(expr),
            FunctionArgumentClause::OnOverflow(overflow) => match overflow {
                ListAggOnOverflow::Error => {}
                ListAggOnOverflow::Truncate {
                    filler,
                    with_count: _,
                } => {
                    self.exprs(filler.as_deref());
                }
            },
            FunctionArgumentClause::Having(HavingBound(_, expr)) => self.expr(expr),
            FunctionArgumentClause::JsonReturningClause(JsonReturningClause { data_type }) => {
                self.data_type(data_type);
            }
            FunctionArgumentClause::IgnoreOrRespectNulls(_)
            | FunctionArgumentClause::Separator(_)
            | FunctionArgumentClause::JsonNullClause(_) => {}
        }
    }

    pub(super) fn function_arg(&mut self, arg: &FunctionArg) {
        let value = match arg {
            FunctionArg::Named {
                name: _,
                arg,
                operator: _,
            } => arg,
            FunctionArg::ExprNamed {
                name,
                arg,
                operator: _,
            } => {
                self.expr(name);
                arg
            }
            FunctionArg::Unnamed(arg) => arg,
        };
        match value {
            FunctionArgExpr::Expr(expr) => self.expr(expr),
            FunctionArgExpr::QualifiedWildcard(_) | FunctionArgExpr::Wildcard => {}
            FunctionArgExpr::WildcardWithOptions(options) => self.wildcard_options(options),
        }
    }

    pub(super) fn window_spec(&mut self, spec: &WindowSpec) {
        let WindowSpec {
            window_name: _,
            partition_by,
            order_by,
            window_frame,
        } = spec;
        self.exprs(partition_by);
        for item in order_by {
            self.order_by_expr(item);
        }
        if let Some(WindowFrame {
            units: _,
            start_bound,
            end_bound,
        }) = window_frame
        {
            for bound in std::iter::once(start_bound).chain(end_bound) {
                match bound {
                    WindowFrameBound::CurrentRow => {}
                    WindowFrameBound::Preceding(expr) | WindowFrameBound::Following(expr) => {
                        self.exprs(expr.as_deref());
                    }
                }
            }
        }
    }

    /// A function in a FROM clause: of an unknown name it is refused as such, of a known one as a table function.
    pub(super) fn table_function(&mut self, name: &ObjectName, arguments: usize, written: String) {
        if self.knows(name, arguments) {
            self.findings.sources.push(super::Source::Function(written));
        } else {
            self.call(name, arguments);
        }
    }
}

fn is_bare(ident: &Ident, word: &str) -> bool {
    ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case(word)
}

fn is_subquery(mut expr: &Expr) -> bool {
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    matches!(expr, Expr::Subquery(_))
}
