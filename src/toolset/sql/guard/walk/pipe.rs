//! The operators behind `|>`.

use sqlparser::ast::{ExprWithAliasAndOrderBy, PipeOperator};

use super::{Source, Walk};

impl Walk {
    pub(super) fn pipe_operator(&mut self, operator: &PipeOperator) {
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
