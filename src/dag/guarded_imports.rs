//! Which lines of a Python file stand under a handler for ImportError: there a missing module must be missing, because
//! the author has written what to do without it.

use std::collections::BTreeSet;

use rustpython_vm::compiler::ast::{self, Expr, Stmt};
use rustpython_vm::compiler::parser;

/// Lines (from 1) of the bodies that catch ImportError, in order; none when the source does not parse.
pub(super) fn lines(source: &str) -> Vec<u32> {
    let Ok(module) = parser::parse_module(source) else {
        return Vec::new();
    };
    let starts: Vec<usize> = std::iter::once(0)
        .chain(
            source
                .bytes()
                .enumerate()
                .filter(|(_, b)| *b == b'\n')
                .map(|(at, _)| at + 1),
        )
        .collect();
    let mut found = Guarded {
        starts,
        lines: BTreeSet::new(),
    };
    found.body(&module.syntax().body, false);
    found.lines.into_iter().collect()
}

struct Guarded {
    /// Offset of each line's first byte.
    starts: Vec<usize>,
    lines: BTreeSet<u32>,
}

impl Guarded {
    fn body(&mut self, body: &[Stmt], guarded: bool) {
        for statement in body {
            self.statement(statement, guarded);
        }
    }

    fn statement(&mut self, statement: &Stmt, guarded: bool) {
        match statement {
            Stmt::Try(r#try) => {
                self.body(
                    &r#try.body,
                    guarded || r#try.handlers.iter().any(catches_import_error),
                );
                for ast::ExceptHandler::ExceptHandler(handler) in &r#try.handlers {
                    self.body(&handler.body, guarded);
                }
                self.body(&r#try.orelse, guarded);
                self.body(&r#try.finalbody, guarded);
            }
            Stmt::With(with) => self.body(
                &with.body,
                guarded || with.items.iter().any(suppresses_import_error),
            ),
            Stmt::If(r#if) => {
                self.body(&r#if.body, guarded);
                for clause in &r#if.elif_else_clauses {
                    self.body(&clause.body, guarded);
                }
            }
            Stmt::For(r#for) => {
                self.body(&r#for.body, guarded);
                self.body(&r#for.orelse, guarded);
            }
            Stmt::While(r#while) => {
                self.body(&r#while.body, guarded);
                self.body(&r#while.orelse, guarded);
            }
            Stmt::Match(r#match) => {
                for case in &r#match.cases {
                    self.body(&case.body, guarded);
                }
            }
            // A class body runs where it stands; a function runs later, when the handlers around it are gone.
            Stmt::ClassDef(class) => self.body(&class.body, guarded),
            Stmt::FunctionDef(function) => self.body(&function.body, false),
            _ => self.mark(statement, guarded),
        }
    }

    /// Notes an import, or a call that may import (`importlib.import_module`), when it is guarded.
    fn mark(&mut self, statement: &Stmt, guarded: bool) {
        let range = match statement {
            Stmt::Import(import) => import.range,
            Stmt::ImportFrom(import) => import.range,
            Stmt::Assign(assign) => assign.range,
            Stmt::AnnAssign(assign) => assign.range,
            Stmt::Expr(expression) => expression.range,
            Stmt::Return(r#return) => r#return.range,
            _ => return,
        };
        if guarded {
            let (first, last) = (
                self.line(range.start().to_usize()),
                self.line(range.end().to_usize()),
            );
            self.lines.extend(first..=last);
        }
    }

    fn line(&self, offset: usize) -> u32 {
        u32::try_from(self.starts.partition_point(|start| *start <= offset)).unwrap_or(u32::MAX)
    }
}

/// Does the handler catch ImportError, or more?
pub(super) fn catches_import_error(handler: &ast::ExceptHandler) -> bool {
    let ast::ExceptHandler::ExceptHandler(handler) = handler;
    handler.type_.as_deref().is_none_or(names_import_error)
}

/// `with suppress(ImportError):`
pub(super) fn suppresses_import_error(item: &ast::WithItem) -> bool {
    match &item.context_expr {
        Expr::Call(call) => {
            name(&call.func) == Some("suppress")
                && call.arguments.args.iter().any(names_import_error)
        }
        _ => false,
    }
}

fn names_import_error(class: &Expr) -> bool {
    match class {
        Expr::Tuple(classes) => classes.elts.iter().any(names_import_error),
        _ => matches!(
            name(class),
            Some("ImportError" | "ModuleNotFoundError" | "Exception" | "BaseException")
        ),
    }
}

fn name(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(attribute) => Some(attribute.attr.as_str()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn only_statements_that_run_under_a_handler_for_import_error_are_guarded() {
        let source = "\
import a
try:
    import b
    if x:
        from c import (
            d,
        )
    def later():
        import e
except (ValueError, builtins.ImportError):
    import f
else:
    import g
try:
    import h
except ValueError:
    pass
with contextlib.suppress(ModuleNotFoundError):
    import i
try:
    import j
except:
    pass
";
        assert_eq!(lines(source), [3, 5, 6, 7, 19, 21]);
    }

    #[test]
    fn a_file_that_does_not_parse_guards_nothing() {
        assert_eq!(lines("try:\n  import (\nexcept: pass"), Vec::<u32>::new());
    }
}
