//! The policy: from what a statement holds to a verdict.

use std::collections::{BTreeSet, HashSet};

use sqlparser::ast::{Query, SetExpr, SetOperator, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::bounded::Bounded;
use super::dialect::Dialect;
use super::leading::{self, Leading, Words};
use super::lexical::{self, Lexed};
use super::refusal::Refusal;
use super::vendor;
use super::walk::{self, Findings, Source};
use crate::toolset::sql::AllowList;

/// The parser's calls within calls. Brackets are bounded before, but not all that nests has brackets.
const RECURSION_LIMIT: usize = 120;
/// Operands that the parser may read, attempts included: a base, and more for every token, far
/// above what statements without a mistake need.
const OPERANDS: usize = 5_000;
const OPERANDS_PER_TOKEN: usize = 20;
/// Stack for reading a statement: a base, and more for every token that may open a level of recursion. sqlparser bounds
/// its recursion in expressions and queries only, and takes a long chain of operators down by recursion.
const BASE_STACK: usize = 4 << 20;
const STACK_PER_TOKEN: usize = if cfg!(debug_assertions) {
    64 << 10
} else {
    16 << 10
};

/// The types of statements that only read tables, by sqlglot's names.
const QUERIES: [&str; 4] = ["Select", "Union", "Intersect", "Except"];

/// What may run, and how it is checked.
#[derive(Clone, Debug)]
pub struct Guard {
    pub dialect: Dialect,
    pub allow_writes: bool,
    /// `None`: every table.
    pub allow_list: Option<AllowList>,
    /// Case-folded names that may be called although nothing is known of them.
    pub allowed_functions: HashSet<String>,
}

/// What an accepted statement refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The kind of statement, by sqlglot's node name.
    pub statement_type: String,
    /// Tables as they are written, sorted.
    pub tables: BTreeSet<String>,
    /// Functions that the known-function lists do not hold, sorted.
    pub unknown_functions: BTreeSet<String>,
}

impl Guard {
    /// Checks a text that is about to be sent to the database.
    ///
    /// With writes allowed and no allow-list nothing is forbidden, and only text that can't be read is refused.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn check(&self, sql: &str) -> Result<Report, Refusal> {
        if sql.trim().is_empty() {
            return Err(Refusal::Empty);
        }
        let lexed = lexical::lex(sql, self.dialect)?;
        let stack = BASE_STACK + lexed.nestable * STACK_PER_TOKEN;
        stacker::maybe_grow(stack, stack, || self.check_lexed(lexed))
    }

    /// Checks a query that a model has written and others will run: one statement of the `allowed` types, by sqlglot's
    /// node names. `None` stands for queries, without DESCRIBE and SHOW, and without anything in them that writes; types
    /// that a Dag author names are all that counts.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn check_types(&self, sql: &str, allowed: Option<&[String]>) -> Result<(), Refusal> {
        let of_types = |statement_type: &str, allowed: &[&str]| {
            let is_one = |name: &&str| is_a(statement_type, name);
            if allowed.iter().any(is_one) {
                return Ok(());
            }
            Err(Refusal::NotOfTypes {
                statement_type: statement_type.to_owned(),
                allowed: allowed.join(", "),
            })
        };
        let Some(allowed) = allowed else {
            return match self.check(sql) {
                Ok(report) => of_types(&report.statement_type, &QUERIES),
                Err(Refusal::StatementType(name)) => of_types(name, &QUERIES),
                Err(refusal) => Err(refusal),
            };
        };
        if sql.trim().is_empty() {
            return Err(Refusal::Empty);
        }
        let mut lexed = lexical::lex(sql, self.dialect)?;
        if lexed.count > 1 {
            return Err(Refusal::Multiple(lexed.count));
        }
        let tokens = lexed.statements.pop().ok_or(Refusal::Empty)?;
        let stack = BASE_STACK + lexed.nestable * STACK_PER_TOKEN;
        let statement_type = stacker::maybe_grow(stack, stack, || {
            match leading::classify(&tokens, self.dialect) {
                Leading::Query => Ok(type_of(&self.parse(tokens)?)),
                Leading::Describe => Ok("Describe"),
                Leading::Show => Ok("Show"),
                Leading::Command => Ok("Command"),
                Leading::Statement(name) | Leading::Expression(name) => Ok(name),
                Leading::Unreadable => Err(unreadable(&tokens)),
            }
        })?;
        let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
        of_types(statement_type, &allowed)
    }

    fn check_lexed(&self, lexed: Lexed) -> Result<Report, Refusal> {
        let several_may_run = self.allow_writes && self.allow_list.is_none();
        if lexed.statements.is_empty() && lexed.count == 0 {
            return Err(Refusal::Empty);
        }
        if lexed.count > 1 && !several_may_run {
            return Err(Refusal::Multiple(lexed.count));
        }
        let mut report = Report::default();
        let context = Context {
            comment: lexed.has_comment,
            version: lexed.has_executable_comment,
        };
        let Lexed { statements, .. } = lexed;
        for tokens in statements {
            report = self.check_statement(tokens, context)?;
        }
        Ok(report)
    }

    fn check_statement(
        &self,
        tokens: Vec<TokenWithSpan>,
        context: Context,
    ) -> Result<Report, Refusal> {
        let leading = leading::classify(&tokens, self.dialect);
        let is_bare_select = tokens.len() == 1 && first_word(&tokens) == "SELECT";
        if self.allow_writes && self.allow_list.is_none() && !is_bare_select {
            return self.check_syntax(leading, tokens);
        }
        if context.version {
            return Err(match self.allow_list {
                Some(_) => Refusal::Unverifiable("an inline comment".to_owned()),
                None => Refusal::Parse(
                    "A version comment (/*! ... */) is run by the server and is not read here. Remove it."
                        .to_owned(),
                ),
            });
        }
        if matches!(leading, Leading::Query | Leading::Statement(_))
            && let Some(word) = leading::second_statement(&tokens, self.dialect)
        {
            return Err(Refusal::Parse(format!(
                "{word} begins a second statement in T-SQL, also without a semicolon. Send one statement, and put \
                 names like this in brackets."
            )));
        }
        if self.dialect == Dialect::Snowflake
            && tokens.iter().any(|token| token.token == Token::LongArrow)
        {
            return Err(Refusal::Parse(
                "Behind ->> stands another statement. Send one statement.".to_owned(),
            ));
        }
        let checks_comments = self.allow_list.is_some() && context.comment;
        if is_bare_select && !checks_comments {
            return Ok(Report {
                statement_type: "Select".to_owned(),
                ..Report::default()
            });
        }
        let name = match leading {
            Leading::Query | Leading::Describe => return self.check_tree(leading, tokens, context),
            Leading::Unreadable => return Err(unreadable(&tokens)),
            Leading::Show if self.allow_list.is_some() => {
                return Err(Refusal::Unverifiable("a SHOW statement".to_owned()));
            }
            Leading::Show => {
                return Ok(Report {
                    statement_type: "Show".to_owned(),
                    ..Report::default()
                });
            }
            Leading::Command => "Command",
            Leading::Statement(name) | Leading::Expression(name) => name,
        };
        if !self.allow_writes {
            return Err(Refusal::StatementType(name));
        }
        match name {
            "Command" | "Execute" | "ExecuteSql" => Err(Refusal::Unverifiable(format!(
                "a {} statement",
                name.to_lowercase()
            ))),
            "Copy" => Err(Refusal::Unverifiable("a COPY statement".to_owned())),
            "Alias" => Err(Refusal::Unverifiable(
                "a statement sqlglot could not parse as a query (e.g. Snowflake LIST @stage)"
                    .to_owned(),
            )),
            "Use" => Err(Refusal::Tables(
                last_word(&tokens).unwrap_or_else(|| "USE".to_owned()),
            )),
            "Insert" | "Update" | "Delete" | "Merge" | "Create" | "Drop" | "Alter"
            | "TruncateTable" | "Comment" | "Grant" | "Revoke" | "Analyze" | "Transaction"
            | "Commit" | "Rollback" | "Export" | "Summarize" => {
                self.check_tree(leading, tokens, context)
            }
            // SET, KILL, ATTACH, PRAGMA ...: they name no table and change what later statements reach.
            _ => Err(Refusal::Unverifiable(format!(
                "a {} statement",
                first_word(&tokens)
            ))),
        }
    }

    /// With everything allowed, only what can't be read is refused.
    fn check_syntax(
        &self,
        leading: Leading,
        tokens: Vec<TokenWithSpan>,
    ) -> Result<Report, Refusal> {
        match leading {
            Leading::Unreadable => return Err(unreadable(&tokens)),
            Leading::Query => {
                self.parse(tokens)?;
            }
            Leading::Describe
            | Leading::Show
            | Leading::Command
            | Leading::Statement(_)
            | Leading::Expression(_) => {}
        }
        Ok(Report::default())
    }

    fn check_tree(
        &self,
        leading: Leading,
        tokens: Vec<TokenWithSpan>,
        context: Context,
    ) -> Result<Report, Refusal> {
        let statement = self.parse(tokens)?;
        let statement_type = match leading {
            Leading::Describe => "Describe",
            _ => type_of(&statement),
        };
        let readable =
            ["Select", "Union", "Intersect", "Except", "Describe"].contains(&statement_type);
        if !self.allow_writes && !readable {
            return Err(Refusal::StatementType(statement_type));
        }
        let findings = walk::walk(&statement, self.dialect);
        if !self.allow_writes
            && let Some(node) = findings.modifies
        {
            return Err(Refusal::Modifies(node));
        }
        let report = report(statement_type, &findings);
        if let Some(allow_list) = &self.allow_list {
            self.check_sources(allow_list, &findings, context)?;
        }
        match findings.not_understood {
            None => Ok(report),
            Some(node) => Err(Refusal::Parse(format!(
                "{node} is not read by the guard, which refuses what it can't check."
            ))),
        }
    }

    fn check_sources(
        &self,
        allow_list: &AllowList,
        findings: &Findings,
        context: Context,
    ) -> Result<(), Refusal> {
        let unknown: BTreeSet<&str> = findings
            .unknown_functions
            .iter()
            .map(String::as_str)
            .filter(|name| !self.allowed_functions.contains(*name))
            .collect();
        if !unknown.is_empty() {
            let names = unknown.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Refusal::Unverifiable(format!(
                "function(s) the parser cannot verify against allowed_tables ({names}); if these functions are \
                 trusted, permit them via allowed_functions"
            )));
        }
        let first = [
            (context.comment, "an inline comment"),
            (findings.has_row_source, "a TABLE(...) row source"),
            (findings.has_table_column, "a TABLE <name> shorthand"),
        ];
        if let Some((_, description)) = first.into_iter().find(|(found, _)| *found) {
            return Err(Refusal::Unverifiable(description.to_owned()));
        }
        let mut unverifiable = Vec::new();
        let mut missing = BTreeSet::new();
        for source in &findings.sources {
            match source {
                Source::Function(written) => {
                    unverifiable.push(format!("table-valued function ({written})"));
                }
                Source::Table(table) if table.quoted => {
                    unverifiable.push("a quoted identifier".to_owned());
                }
                Source::Table(table) => {
                    let allowed = !table.named_at_run_time
                        && allow_list.allows(
                            table.catalog.as_deref(),
                            table.schema.as_deref(),
                            &table.name,
                        );
                    if !allowed {
                        missing.insert(table.written());
                    }
                }
            }
        }
        if !unverifiable.is_empty() {
            return Err(Refusal::Unverifiable(unverifiable.join("; ")));
        }
        if missing.is_empty() {
            Ok(())
        } else {
            Err(Refusal::Tables(
                missing.into_iter().collect::<Vec<_>>().join(", "),
            ))
        }
    }

    fn parse(&self, tokens: Vec<TokenWithSpan>) -> Result<Statement, Refusal> {
        if let Some(placeholder) = placeholder(&tokens) {
            return Err(Refusal::Parse(format!(
                "The placeholder {placeholder} has no value here. Write the value itself into the query."
            )));
        }
        let tokens = vendor::rewrite(tokens, self.dialect);
        let refusal = |error: ParserError| {
            if error == ParserError::RecursionLimitExceeded {
                return Refusal::Parse(
                    "The statement is too deeply nested or has a mistake deep inside. Write a simpler query.".to_owned(),
                );
            }
            let text = error.to_string();
            let text = text.strip_prefix("sql parser error: ").unwrap_or(&text);
            Refusal::Parse(format!(
                "{text}. Check the syntax, or write the query in a simpler way."
            ))
        };
        let dialect = Bounded::new(
            self.dialect.parser(),
            OPERANDS + tokens.len() * OPERANDS_PER_TOKEN,
        );
        let mut parser = Parser::new(&dialect)
            .with_recursion_limit(RECURSION_LIMIT)
            .with_tokens_with_locations(tokens);
        let statement = parser.parse_statement().map_err(refusal)?;
        match parser.next_token().token {
            Token::EOF => Ok(statement),
            token => Err(Refusal::Parse(format!(
                "Unexpected {token} behind the statement. Check the syntax, or write the query in a simpler way."
            ))),
        }
    }
}

/// What is known of the text as a whole.
#[derive(Clone, Copy)]
struct Context {
    comment: bool,
    /// A comment that the server runs.
    version: bool,
}

/// `?`, `%s`, `%(name)s`: there is never a value to bind.
fn placeholder(tokens: &[TokenWithSpan]) -> Option<&'static str> {
    tokens.windows(3).find_map(|window| match window {
        [before, percent, after] if percent.token == Token::Mod => {
            let has_left_side = matches!(
                &before.token,
                Token::Number(..) | Token::RParen | Token::RBracket | Token::SingleQuotedString(_)
            ) || matches!(&before.token, Token::Word(word) if word.keyword == Keyword::NoKeyword);
            let s = matches!(&after.token, Token::Word(word) if word.value == "s");
            (!has_left_side && (s || after.token == Token::LParen)).then_some("%s")
        }
        _ => None,
    }).or_else(|| {
        let last_two = tokens.len().saturating_sub(2);
        let question = tokens.iter().any(|token| {
            matches!(&token.token, Token::Placeholder(text) if text == "?")
        }) || matches!(tokens.get(last_two..), Some([before, last])
            if last.token == Token::Question && !matches!(before.token, Token::Question));
        question.then_some("?")
    })
}

fn unreadable(tokens: &[TokenWithSpan]) -> Refusal {
    Refusal::Parse(format!(
        "Invalid expression / Unexpected token: {} does not begin a statement that can be read. Write one SELECT.",
        first_word(tokens)
    ))
}

fn first_word(tokens: &[TokenWithSpan]) -> String {
    Words(tokens)
        .keyword(0)
        .or_else(|| tokens.first().map(|token| token.token.to_string()))
        .unwrap_or_default()
}

fn last_word(tokens: &[TokenWithSpan]) -> Option<String> {
    tokens.last().map(|token| token.token.to_string())
}

fn report(statement_type: &str, findings: &Findings) -> Report {
    let tables = findings
        .sources
        .iter()
        .filter_map(|source| match source {
            Source::Table(table) => Some(table.written()),
            Source::Function(_) => None,
        })
        .collect();
    Report {
        statement_type: statement_type.to_owned(),
        tables,
        unknown_functions: findings.unknown_functions.iter().cloned().collect(),
    }
}

/// Is the node of sqlglot's class `name`, or of one that derives from it?
fn is_a(node: &str, name: &str) -> bool {
    node == name
        || match name {
            "SetOperation" => ["Union", "Intersect", "Except"].contains(&node),
            "Query" => QUERIES.contains(&node) || node == "Subquery",
            "DML" => ["Insert", "Update", "Delete", "Merge"].contains(&node),
            "Expr" | "Expression" => true,
            _ => false,
        }
}

/// The statement's type by sqlglot's node name.
fn type_of(statement: &Statement) -> &'static str {
    if let Statement::Query(query) = statement {
        return type_of_query(query);
    }
    walk::node_name(statement)
}

fn type_of_query(query: &Query) -> &'static str {
    match &*query.body {
        SetExpr::Select(_) | SetExpr::Table(_) => "Select",
        // A WITH in front of a bracket belongs to the query inside.
        SetExpr::Query(inner) if query.with.is_some() => type_of_query(inner),
        SetExpr::Query(_) => "Subquery",
        SetExpr::SetOperation { op, .. } => match op {
            SetOperator::Union => "Union",
            SetOperator::Except | SetOperator::Minus => "Except",
            SetOperator::Intersect => "Intersect",
        },
        SetExpr::Values(_) => "Values",
        SetExpr::Insert(statement)
        | SetExpr::Update(statement)
        | SetExpr::Delete(statement)
        | SetExpr::Merge(statement) => walk::node_name(statement),
    }
}
