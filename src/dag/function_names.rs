//! What the body of a Python function asks for by name: the modules it imports, the names it loads. For `check`, which
//! looks at functions without calling them.

use rustpython_vm::compiler::ast::visitor::{Visitor, walk_expr, walk_stmt};
use rustpython_vm::compiler::ast::{self, ExceptHandler, Expr, Stmt};
use rustpython_vm::compiler::parser;
use serde::Serialize;

use super::guarded_imports::{catches_import_error, suppresses_import_error};

/// What a function's body mentions. Lines count from 1; what stands under a handler for a missing module is left out.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct FunctionNames {
    /// `import a.b`, `from ..a import b`.
    pub imports: Vec<Import>,
    /// Names with the attributes that are asked of them: `os.path.join`.
    pub names: Vec<(String, u32)>,
}

/// An import in a function's body.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Import {
    /// Empty for `from . import a`.
    pub module: String,
    /// Dots before the module's name.
    pub level: u32,
    /// `None` for `import module`; each with the name that it gets in the function.
    pub names: Option<Vec<(String, String)>>,
    /// What `import module as name` calls the module.
    pub alias: Option<String>,
    pub line: u32,
}

/// The names of a function: the one of this name (`<lambda>` for a lambda) of which the first line, or a decorator's, is
/// `line`. `None` when the source does not parse or has no such function.
pub(super) fn of(source: &str, name: &str, line: u32) -> Option<FunctionNames> {
    let module = parser::parse_module(source).ok()?;
    let lines = Lines::of(source);
    let mut finder = Finder {
        lines: &lines,
        name,
        line,
        found: None,
    };
    for statement in &module.syntax().body {
        finder.visit_stmt(statement);
    }
    let mut body = Body {
        lines: &lines,
        guarded: false,
        found: FunctionNames::default(),
    };
    match finder.found? {
        Found::Function(function) => function
            .body
            .iter()
            .for_each(|statement| body.visit_stmt(statement)),
        Found::Lambda(lambda) => body.visit_expr(&lambda.body),
    }
    Some(body.found)
}

/// Where the lines of a text begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(source: &str) -> Self {
        let ends = source.bytes().enumerate().filter(|(_, b)| *b == b'\n');
        Self(
            std::iter::once(0)
                .chain(ends.map(|(at, _)| at + 1))
                .collect(),
        )
    }

    fn line(&self, offset: usize) -> u32 {
        u32::try_from(self.0.partition_point(|start| *start <= offset)).unwrap_or(u32::MAX)
    }
}

enum Found<'a> {
    Function(&'a ast::StmtFunctionDef),
    Lambda(&'a ast::ExprLambda),
}

/// Looks for one function.
struct Finder<'a, 'b> {
    lines: &'b Lines,
    name: &'b str,
    line: u32,
    found: Option<Found<'a>>,
}

impl<'a> Visitor<'a> for Finder<'a, '_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if let Stmt::FunctionDef(function) = statement
            && function.name.as_str() == self.name
        {
            let first = self.lines.line(function.range.start().to_usize());
            let last = self.lines.line(function.name.range.start().to_usize());
            if (first..=last).contains(&self.line) {
                self.found = Some(Found::Function(function));
            }
        }
        walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Lambda(lambda) = expression
            && self.name == "<lambda>"
            && self.found.is_none()
            && self.lines.line(lambda.range.start().to_usize()) == self.line
        {
            self.found = Some(Found::Lambda(lambda));
        }
        walk_expr(self, expression);
    }
}

/// Notes what a body mentions. Annotations are not evaluated.
struct Body<'b> {
    lines: &'b Lines,
    guarded: bool,
    found: FunctionNames,
}

impl Body<'_> {
    fn under_guard(&mut self, guarded: bool, body: &[Stmt]) {
        let before = self.guarded;
        self.guarded |= guarded;
        for statement in body {
            self.visit_stmt(statement);
        }
        self.guarded = before;
    }

    fn note_import(&mut self, offset: usize, import: Import) {
        if !self.guarded {
            let line = self.lines.line(offset);
            self.found.imports.push(Import { line, ..import });
        }
    }
}

impl<'a> Visitor<'a> for Body<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => {
                for alias in &import.names {
                    let imported = Import {
                        module: alias.name.to_string(),
                        alias: alias.asname.as_ref().map(ToString::to_string),
                        ..Import::default()
                    };
                    self.note_import(import.range.start().to_usize(), imported);
                }
            }
            Stmt::ImportFrom(import) => {
                let names = import.names.iter().map(|alias| {
                    let bound = alias.asname.as_ref().unwrap_or(&alias.name);
                    (alias.name.to_string(), bound.to_string())
                });
                let module = import.module.as_ref();
                let imported = Import {
                    module: module.map_or_else(String::new, ToString::to_string),
                    level: import.level,
                    names: Some(names.collect()),
                    ..Import::default()
                };
                self.note_import(import.range.start().to_usize(), imported);
            }
            Stmt::Try(r#try) => {
                let guarded = r#try
                    .handlers
                    .iter()
                    .any(|handler| catches_import_error(handler) && !raises(handler));
                self.under_guard(guarded, &r#try.body);
                for handler in &r#try.handlers {
                    self.visit_except_handler(handler);
                }
                self.under_guard(false, &r#try.orelse);
                self.under_guard(false, &r#try.finalbody);
            }
            Stmt::With(with) => {
                for item in &with.items {
                    self.visit_with_item(item);
                }
                let guarded = with.items.iter().any(suppresses_import_error);
                self.under_guard(guarded, &with.body);
            }
            // What would only be known to somebody who reads types.
            Stmt::If(r#if) if is_type_checking(&r#if.test) => {
                for clause in &r#if.elif_else_clauses {
                    self.visit_elif_else_clause(clause);
                }
            }
            _ => walk_stmt(self, statement),
        }
    }

    fn visit_annotation(&mut self, _: &'a Expr) {}

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Some(dotted) = dotted(expression) {
            if !self.guarded {
                let start = match expression {
                    Expr::Name(name) => name.range.start(),
                    Expr::Attribute(attribute) => attribute.range.start(),
                    _ => return,
                };
                self.found
                    .names
                    .push((dotted, self.lines.line(start.to_usize())));
            }
            return;
        }
        walk_expr(self, expression);
    }
}

/// `a.b.c`; nothing for what is asked of a call's result or the like, and nothing for a name that is assigned to.
fn dotted(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Name(name) => name.ctx.is_load().then(|| name.id.to_string()),
        Expr::Attribute(attribute) => {
            let before = dotted(&attribute.value)?;
            Some(format!("{before}.{}", attribute.attr))
        }
        _ => None,
    }
}

fn is_type_checking(test: &Expr) -> bool {
    dotted(test).is_some_and(|name| name == "TYPE_CHECKING" || name.ends_with(".TYPE_CHECKING"))
}

/// Does a handler raise again?
fn raises(handler: &ExceptHandler) -> bool {
    struct Raises(bool);
    impl<'a> Visitor<'a> for Raises {
        fn visit_stmt(&mut self, statement: &'a Stmt) {
            self.0 |= matches!(statement, Stmt::Raise(_));
            walk_stmt(self, statement);
        }
    }
    let ExceptHandler::ExceptHandler(handler) = handler;
    let mut found = Raises(false);
    for statement in &handler.body {
        found.visit_stmt(statement);
    }
    found.0
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    const SOURCE: &str = "\
import pandas
@task
@other(
    1)
def go(frame: pandas.Frame = pandas.EMPTY) -> pandas.Frame:
    import numpy.linalg as la, json
    from ..near import (helper,
        other as more)
    try:
        import guarded
        guarded.use()
    except ImportError:
        fallback.use()
    try:
        import reraised
    except Exception:
        raise
    if TYPE_CHECKING:
        import types_only
    local: pandas.Series = os.path.join(a, b().c)
    return [x for x in lambda_holder(lambda: later.on)]
class C:
    def go(self):
        self.rest.get()
f = lambda: requests.get(url)
";

    fn import(module: &str, level: u32, names: Option<&[&str]>, line: u32) -> Import {
        Import {
            module: module.to_owned(),
            level,
            names: names.map(|names| {
                let bound = |name: &&str| {
                    let (name, bound) = name.split_once(" as ").unwrap_or((name, name));
                    (name.to_owned(), bound.to_owned())
                };
                names.iter().map(bound).collect()
            }),
            line,
            alias: (module == "numpy.linalg").then(|| "la".to_owned()),
        }
    }

    #[test]
    fn imports_and_names_of_a_body_are_found_with_their_lines() {
        let found = of(SOURCE, "go", 5).unwrap();
        assert_eq!(
            found.imports,
            [
                import("numpy.linalg", 0, None, 6),
                import("json", 0, None, 6),
                import("near", 2, Some(&["helper", "other as more"]), 7),
                import("reraised", 0, None, 15),
            ]
        );
        let names: Vec<_> = found
            .names
            .iter()
            .map(|(name, line)| (name.as_str(), *line))
            .collect();
        assert_eq!(
            names,
            [
                ("ImportError", 12),
                ("fallback.use", 13),
                ("Exception", 16),
                ("os.path.join", 20),
                ("a", 20),
                ("b", 20),
                ("lambda_holder", 21),
                ("later.on", 21),
                ("x", 21),
            ]
        );
        // By a decorator's line as well: the compiler may count from there.
        assert_eq!(of(SOURCE, "go", 2), Some(found));
    }

    #[test]
    fn functions_are_told_apart_by_their_lines() {
        let method = of(SOURCE, "go", 23).unwrap();
        assert_eq!(method.names, [("self.rest.get".to_owned(), 24)]);
        let lambda = of(SOURCE, "<lambda>", 25).unwrap();
        assert_eq!(lambda.names[0], ("requests.get".to_owned(), 25));
        assert_eq!(of(SOURCE, "go", 99), None);
        assert_eq!(of("def (", "go", 1), None);
    }
}
