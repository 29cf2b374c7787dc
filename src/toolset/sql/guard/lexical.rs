//! Cutting text into tokens, by the engine's rules and by the parser's, and refusing text on which they differ.
//!
//! The engine's rules are a scan of our own over quotes and comments. Comments are then blanked out, so that the
//! parser sees white space where the engine does, and the parser's tokens must end their strings and quoted names
//! exactly where the scan did.

use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Whitespace, Word};

use super::dialect::{BackslashSetting, Dialect, DollarQuotes, Lexicon};
use super::refusal::Refusal;

/// Bytes of SQL that are read at all.
const MAX_BYTES: usize = 1 << 20;
/// Tokens that may open a level of recursion in a parser: all but commas, literals and closing brackets.
const MAX_NESTABLE: usize = 8_000;
/// Brackets within brackets.
const MAX_NESTING: usize = 100;

/// The tokens of a text.
#[derive(Debug)]
pub(super) struct Lexed {
    /// One list for every statement that has tokens.
    pub statements: Vec<Vec<TokenWithSpan>>,
    /// Statements as sqlglot counts them: a comment behind a semicolon is one.
    pub count: usize,
    /// How many tokens may open a level of recursion in a parser.
    pub nestable: usize,
    pub has_comment: bool,
    /// A comment that the server runs: MySQL's `/*! ... */`.
    pub has_executable_comment: bool,
}

/// Cuts `sql`.
pub(super) fn lex(sql: &str, dialect: Dialect) -> Result<Lexed, Refusal> {
    if sql.len() > MAX_BYTES {
        return Err(Refusal::Parse(format!(
            "The statement has {} bytes, more than the {MAX_BYTES} that are read. Write a shorter query.",
            sql.len()
        )));
    }
    let lexicon = dialect.lexicon();
    if lexicon.substitutes_variables && sql.contains("${") {
        return Err(Refusal::Parse(
            "The server puts the value of a variable in place of ${...} before it reads the statement, also inside \
             strings. Write the value itself."
                .to_owned(),
        ));
    }
    let scan = Scan::new(sql, lexicon).run()?;
    let tokens = Tokenizer::new(dialect.parser(), &scan.blanked)
        .tokenize_with_location()
        .map_err(|error| Refusal::Tokens(error.to_string()))?;
    check_agreement(&tokens, &scan, dialect)?;
    let mut nesting = 0_usize;
    let mut statements = vec![Vec::new()];
    let mut count = 0;
    let mut last_line = 0;
    let mut nestable = 0;
    for token in tokens {
        match &token.token {
            Token::Whitespace(_) => continue,
            Token::SemiColon => {
                count += usize::from(statements.last().is_some_and(|tokens| !tokens.is_empty()));
                count += usize::from(scan.comment_follows_on_line(token.span.end));
                last_line = token.span.end.line;
                statements.push(Vec::new());
                continue;
            }
            Token::LParen | Token::LBracket | Token::LBrace => {
                nesting += 1;
                nestable += 1;
            }
            Token::RParen | Token::RBracket | Token::RBrace => nesting = nesting.saturating_sub(1),
            Token::Comma | Token::Number(..) | Token::SingleQuotedString(_) => {}
            _ => nestable += 1,
        }
        if nesting > MAX_NESTING || nestable > MAX_NESTABLE {
            return Err(Refusal::Parse(format!(
                "The statement is too long or too deeply nested (at most {MAX_NESTING} brackets within brackets and \
                 {MAX_NESTABLE} words and signs). Write a simpler query."
            )));
        }
        if let Some(statement) = statements.last_mut() {
            statement.push(token);
        }
    }
    let open_end = statements.last().is_some_and(Vec::is_empty) && statements.len() > 1;
    if open_end {
        // Nothing but a comment on a later line behind the last semicolon belongs to the semicolon as well.
        count += usize::from(scan.comments.iter().any(|comment| comment.line > last_line));
    } else {
        count += usize::from(statements.last().is_some_and(|tokens| !tokens.is_empty()));
    }
    statements.retain(|tokens| !tokens.is_empty());
    Ok(Lexed {
        statements,
        count,
        nestable,
        has_comment: !scan.comments.is_empty(),
        has_executable_comment: scan.executable_comment,
    })
}

/// The parser must have cut strings and quoted names where the engine does, and found no comment of its own.
fn check_agreement(
    tokens: &[TokenWithSpan],
    scan: &Scan<'_>,
    dialect: Dialect,
) -> Result<(), Refusal> {
    let ambiguous = || {
        Refusal::Parse(
            "The quotes or comments of the statement can be read in two ways. Use plain '...' strings without \
             backslashes, and no comments."
                .to_owned(),
        )
    };
    let mut ends = scan.quote_ends.iter().peekable();
    for token in tokens {
        let quoted = match &token.token {
            Token::Whitespace(
                Whitespace::SingleLineComment { .. } | Whitespace::MultiLineComment(_),
            ) => return Err(ambiguous()),
            Token::Whitespace(Whitespace::Space | Whitespace::Newline | Whitespace::Tab) => false,
            Token::DollarQuotedString(_)
                if dialect.lexicon().dollar_quotes == DollarQuotes::Never =>
            {
                return Err(ambiguous());
            }
            Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::TripleSingleQuotedString(_)
            | Token::TripleDoubleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::DoubleQuotedByteStringLiteral(_)
            | Token::TripleSingleQuotedByteStringLiteral(_)
            | Token::TripleDoubleQuotedByteStringLiteral(_)
            | Token::SingleQuotedRawStringLiteral(_)
            | Token::DoubleQuotedRawStringLiteral(_)
            | Token::TripleSingleQuotedRawStringLiteral(_)
            | Token::TripleDoubleQuotedRawStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_) => true,
            // X'1F' has quotes, 0x1F has none.
            Token::HexStringLiteral(_) => ends.peek() == Some(&&token.span.end),
            // Oracle's q'[...]' ends where its own bracket says: no rule of the scan covers it.
            Token::QuoteDelimitedStringLiteral(_)
            | Token::NationalQuoteDelimitedStringLiteral(_) => {
                return Err(ambiguous());
            }
            Token::Word(Word { quote_style, .. }) => quote_style.is_some(),
            _ => false,
        };
        if quoted && ends.next() != Some(&token.span.end) {
            return Err(ambiguous());
        }
    }
    if ends.next().is_some() {
        Err(ambiguous())
    } else {
        Ok(())
    }
}

/// Where a comment starts.
type CommentStart = Location;

/// A scan over quotes and comments.
struct Scan<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    lexicon: Lexicon,
    line: u64,
    column: u64,
    /// The last two characters outside white space and quotes, newest first: the prefix of a literal.
    before: [char; 2],
    blanked: String,
    /// Ends of strings and quoted identifiers.
    quote_ends: Vec<Location>,
    comments: Vec<CommentStart>,
    executable_comment: bool,
}

impl<'a> Scan<'a> {
    fn new(sql: &'a str, lexicon: Lexicon) -> Self {
        Self {
            rest: sql.chars().peekable(),
            lexicon,
            line: 1,
            column: 1,
            before: ['\0'; 2],
            blanked: String::with_capacity(sql.len()),
            quote_ends: Vec::new(),
            comments: Vec::new(),
            executable_comment: false,
        }
    }

    fn location(&self) -> Location {
        Location {
            line: self.line,
            column: self.column,
        }
    }

    fn comment_follows_on_line(&self, end: Location) -> bool {
        let after_end = |start: &Location| start.line == end.line && start.column >= end.column;
        let Some(comment) = self.comments.iter().find(|start| after_end(start)) else {
            return false;
        };
        // Only white space may stand between.
        let line = self
            .blanked
            .split('\n')
            .nth(usize::try_from(end.line - 1).unwrap_or(usize::MAX));
        let from = usize::try_from(end.column.saturating_sub(1)).unwrap_or(usize::MAX);
        let length = usize::try_from(comment.column - end.column).unwrap_or(0);
        line.is_some_and(|line| {
            line.chars()
                .skip(from)
                .take(length)
                .all(char::is_whitespace)
        })
    }

    fn peek(&mut self) -> Option<char> {
        self.rest.peek().copied()
    }

    /// Whether the text goes on with `text` behind the next character.
    fn follows(&self, text: &str) -> bool {
        let mut rest = self.rest.clone();
        rest.next();
        text.chars().all(|c| rest.next() == Some(c))
    }

    fn advance(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        if c == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(c)
    }

    fn copy(&mut self) -> Option<char> {
        let c = self.advance()?;
        self.blanked.push(c);
        Some(c)
    }

    /// White space instead of a character, in as many columns and lines.
    fn blank(&mut self) -> Option<char> {
        let c = self.advance()?;
        self.blanked.push(if c == '\n' { '\n' } else { ' ' });
        Some(c)
    }

    fn run(mut self) -> Result<Self, Refusal> {
        while let Some(c) = self.peek() {
            match c {
                '\'' => self.string('\'')?,
                '"' if self.lexicon.double_quoted_strings => self.string('"')?,
                '"' => {
                    if self.before == ['&', 'U'] || self.before == ['&', 'u'] {
                        return Err(Refusal::Parse(
                            "Identifiers with Unicode escapes (U&\"...\") are not read. Write the name itself."
                                .to_owned(),
                        ));
                    }
                    self.quoted_identifier('"')?;
                }
                '`' if self.lexicon.backtick_identifiers => self.quoted_identifier('`')?,
                '[' if self.lexicon.bracket_identifiers => self.quoted_identifier(']')?,
                '$' if self.lexicon.dollar_quotes != DollarQuotes::Never => self.dollar()?,
                '$' if self.dollar_quote_tag().is_some() => {
                    return Err(Refusal::Parse(
                        "Dollar quotes ($$...$$) are not read in this dialect. Use '...'."
                            .to_owned(),
                    ));
                }
                '-' if self.follows("-") && self.dashes_are_a_comment() => {
                    self.line_comment()?;
                }
                '#' if self.lexicon.hash_comments => self.line_comment()?,
                '#' if !self.lexicon.hash_symbol => {
                    return Err(Refusal::Parse(
                        "A '#' outside quotes is not read in this dialect.".to_owned(),
                    ));
                }
                '/' if self.lexicon.slash_comments && self.follows("/") => self.line_comment()?,
                '/' if self.follows("*") => self.block_comment()?,
                '\0' => {
                    return Err(Refusal::Parse(
                        "A NUL character is not read: an engine may end the statement there."
                            .to_owned(),
                    ));
                }
                // White space to one reader and part of a name to another.
                _ if c.is_whitespace() && !c.is_ascii() => {
                    return Err(Refusal::Parse(format!(
                        "The white space U+{:04X} can be read in two ways. Use plain spaces.",
                        u32::from(c)
                    )));
                }
                _ => {
                    self.copy();
                    let [last, _] = self.before;
                    self.before = [c, last];
                }
            }
        }
        Ok(self)
    }

    fn dashes_are_a_comment(&self) -> bool {
        let third = self.rest.clone().nth(2);
        !self.lexicon.dashes_need_space || third.is_none_or(|c| c.is_whitespace() || c.is_control())
    }

    fn unterminated(&self, what: &str, start: Location) -> Refusal {
        Refusal::Tokens(format!(
            "the {what} that starts at line {}, column {} has no end",
            start.line, start.column
        ))
    }

    fn string(&mut self, quote: char) -> Result<(), Refusal> {
        let start = self.location();
        if self.lexicon.raw_strings && (self.has_prefix('R') || self.has_prefix('r')) {
            return Err(Refusal::Parse(
                "Raw strings (r'...') are not read in this dialect. Use '...'.".to_owned(),
            ));
        }
        let is_escape_string =
            self.lexicon.escape_strings && (self.has_prefix('E') || self.has_prefix('e'));
        let escapes = self.lexicon.backslash || (quote == '\'' && is_escape_string);
        let unsure = match self.lexicon.backslash_is_a_setting {
            BackslashSetting::No => false,
            BackslashSetting::InPlainStrings => !is_escape_string,
            BackslashSetting::InDoubleQuotes => quote == '"',
        };
        let triple = self.lexicon.triple_quotes && self.follows(&format!("{quote}{quote}"));
        for _ in 0..(if triple { 3 } else { 1 }) {
            self.copy();
        }
        loop {
            match self.copy() {
                None => return Err(self.unterminated("string", start)),
                // Two backslashes in front of a quote mean the same either way, one does not.
                Some('\\') if escapes || unsure => {
                    let escaped = self.copy();
                    if unsure && escaped == Some(quote) {
                        return Err(Refusal::Parse(format!(
                            "A backslash before a quote can be read in two ways. Write {quote}{quote} for a quote \
                             within a string."
                        )));
                    }
                }
                Some(c) if c == quote && triple => {
                    if self.peek() == Some(quote) && self.follows(&quote.to_string()) {
                        self.copy();
                        self.copy();
                        break;
                    }
                }
                Some(c) if c == quote => {
                    if self.peek() != Some(quote) {
                        break;
                    }
                    self.copy();
                }
                Some(_) => {}
            }
        }
        self.end_of_quote();
        Ok(())
    }

    /// Whether the quote ahead has a prefix as in `E'...'`: the letter stands on its own, right in front.
    fn has_prefix(&self, letter: char) -> bool {
        let [last, before] = self.before;
        last == letter
            && self.blanked.ends_with(last)
            && !(before.is_alphanumeric() || before == '_' || before == '$')
    }

    fn quoted_identifier(&mut self, close: char) -> Result<(), Refusal> {
        let start = self.location();
        self.copy();
        loop {
            match self.copy() {
                None => return Err(self.unterminated("quoted identifier", start)),
                // ClickHouse and BigQuery escape in names as in strings.
                Some('\\') if self.lexicon.backslash => {
                    return Err(Refusal::Parse(
                        "A backslash in a quoted name can be read in two ways. Use plain names."
                            .to_owned(),
                    ));
                }
                Some(c) if c == close => {
                    if self.peek() != Some(close) {
                        break;
                    }
                    self.copy();
                }
                Some(_) => {}
            }
        }
        self.end_of_quote();
        Ok(())
    }

    fn end_of_quote(&mut self) {
        let end = self.location();
        self.quote_ends.push(end);
        self.before = ['\0'; 2];
    }

    /// The tag of the dollar quote that opens here: empty for `$$`.
    fn dollar_quote_tag(&self) -> Option<String> {
        let [last, _] = self.before;
        let in_a_name = is_part_of_a_name(last) && self.blanked.ends_with(last);
        let tag: String = self
            .rest
            .clone()
            .skip(1)
            .take_while(|c| is_part_of_a_name(*c))
            .collect();
        let opens = !in_a_name
            && self.follows(&format!("{tag}$"))
            && !tag.starts_with(|c: char| c.is_ascii_digit());
        opens.then_some(tag)
    }

    /// `$$...$$`, `$tag$...$tag$`, or a dollar that quotes nothing.
    fn dollar(&mut self) -> Result<(), Refusal> {
        let tag = self
            .dollar_quote_tag()
            .filter(|tag| self.lexicon.dollar_quotes == DollarQuotes::Tagged || tag.is_empty());
        let Some(tag) = tag else {
            self.copy();
            let [last, _] = self.before;
            self.before = ['$', last];
            return Ok(());
        };
        let start = self.location();
        let length = tag.chars().count() + 2;
        for _ in 0..length {
            self.copy();
        }
        loop {
            match self.peek() {
                None => return Err(self.unterminated("dollar-quoted string", start)),
                Some('$') if self.follows(&format!("{tag}$")) => {
                    for _ in 0..length {
                        self.copy();
                    }
                    break;
                }
                Some(_) => {
                    self.copy();
                }
            }
        }
        self.end_of_quote();
        Ok(())
    }

    fn line_comment(&mut self) -> Result<(), Refusal> {
        self.comments.push(self.location());
        while let Some(c) = self.peek() {
            if c == '\n' {
                break;
            }
            self.blank();
            let is_lone_return = c == '\r' && self.peek().is_some_and(|next| next != '\n');
            let may_end_a_line =
                matches!(c, '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}');
            if is_lone_return || may_end_a_line {
                return Err(Refusal::Parse(
                    "A comment with an unusual end of line can be read in two ways. Remove the comment."
                        .to_owned(),
                ));
            }
        }
        self.before = ['\0'; 2];
        Ok(())
    }

    fn block_comment(&mut self) -> Result<(), Refusal> {
        let start = self.location();
        self.comments.push(start);
        self.blank();
        self.blank();
        // MySQL's own is `/*!`, MariaDB's `/*M!`, TiDB's `/*T!`.
        let executable = match self.peek() {
            Some('!') => true,
            Some(c) => c.is_ascii_alphabetic() && self.follows("!"),
            None => false,
        };
        self.executable_comment |= executable && self.lexicon.executable_comments;
        loop {
            match self.blank() {
                None => return Err(self.unterminated("comment", start)),
                Some('*') if self.peek() == Some('/') => {
                    self.blank();
                    break;
                }
                Some('/') if self.peek() == Some('*') => {
                    return Err(Refusal::Parse(
                        "A comment within a comment can be read in two ways. Remove the comments."
                            .to_owned(),
                    ));
                }
                Some(_) => {}
            }
        }
        self.before = ['\0'; 2];
        Ok(())
    }
}

/// PostgreSQL takes every character beyond ASCII for part of a name, also where it is no letter.
fn is_part_of_a_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()
}
