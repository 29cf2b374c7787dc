//! Jinja templates in template fields: the environment, and how a field is rendered.
//!
//! minijinja with Python's methods on strings, lists and dicts; what it lacks is in the files beside this one. No
//! Airflow object is here but those that templates see.

pub mod datetime;
mod literal;
pub mod objects;
mod operators;
mod pendulum_format;
mod percent;
mod text;
pub mod values;

use std::path::PathBuf;
use std::sync::Arc;

use minijinja::value::{Kwargs, Rest, Value, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, UndefinedBehavior, context};
use serde_json::Value as Json;

use self::datetime::{PyDate, PyDateTime, add_or_subtract};
use self::objects::DagFunction;
use self::percent::Operand;
use crate::airflow::python_text::{JsonStyle, dumps};

/// A template that could not be rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct TemplateError {
    /// The template field, or where in it.
    pub field: String,
    /// Jinja's class for it.
    pub class: &'static str,
    pub message: String,
}

/// How a Dag wants its templates rendered.
#[derive(Default)]
pub struct Options {
    /// Folders in which template files are looked up, in order.
    pub searchpath: Vec<PathBuf>,
    /// `render_template_as_native_obj`.
    pub native: bool,
    /// Strings with one of these endings are names of template files.
    pub extensions: Vec<String>,
    /// `user_defined_filters` that are functions.
    pub filters: Vec<(String, Arc<DagFunction>)>,
}

/// The template environment of one task instance.
pub struct Templates {
    environment: Environment<'static>,
    context: Value,
    native: bool,
    extensions: Vec<String>,
}

impl Templates {
    /// An environment over a context (see `task::context`).
    #[must_use]
    pub fn new(options: Options, context: Value) -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_unknown_method_callback(text::method);
        environment.set_debug(true);
        environment.set_formatter(|out, _state, value| {
            if value.is_undefined() {
                return Err(Error::from(ErrorKind::UndefinedError));
            }
            out.write_str(&values::text(value)).map_err(Error::from)
        });
        environment.set_loader(move |name| load(&options.searchpath, name));
        environment.add_function(operators::PLUS, |state: &State, a: Value, b: Value| {
            arithmetic(state, &a, &b, false)
        });
        environment.add_function(operators::MINUS, |state: &State, a: Value, b: Value| {
            arithmetic(state, &a, &b, true)
        });
        environment.add_function(operators::CONCAT, |a: Value, b: Value| {
            values::text(&a) + &values::text(&b)
        });
        environment.add_function(operators::PERCENT, modulo);
        environment.add_filter(
            "format",
            |text: Value, rest: Rest<Value>, kwargs: Kwargs| -> Result<String, Error> {
                let text = values::text(&text);
                let named: Vec<_> = kwargs.args().collect();
                if named.is_empty() {
                    return percent::format(&text, &Operand::Tuple(&rest));
                }
                let pairs: Vec<_> = named
                    .into_iter()
                    .map(|name| Ok((name.to_owned(), kwargs.get::<Value>(name)?)))
                    .collect::<Result<_, Error>>()?;
                percent::format(&text, &Operand::One(&Value::from_pairs(pairs)))
            },
        );
        add_filters(&mut environment);
        text::add_filters(&mut environment);
        for (name, function) in options.filters {
            environment.add_filter(name, move |value: Value, rest: Rest<Value>| {
                let mut args = vec![value];
                args.extend(rest.iter().cloned());
                function.invoke(&args)
            });
        }
        Self {
            environment,
            context,
            native: options.native,
            extensions: options.extensions,
        }
    }

    /// The text that a template renders to.
    ///
    /// # Errors
    /// A syntax error, an undefined name, a lookup that failed.
    pub fn render_text(&self, field: &str, source: &str) -> Result<String, TemplateError> {
        let source = operators::rewrite(source);
        self.environment
            .render_named_str(field, &source, &self.context)
            .map_err(|error| self.describe(field, &source, &error))
    }

    /// The value of a string in a template field: its rendered text, the rendered text of the file it names, or with
    /// `render_template_as_native_obj` a value in XCom wire form.
    ///
    /// # Errors
    /// See [`Self::render_text`].
    pub fn render(&self, field: &str, source: &str) -> Result<Json, TemplateError> {
        if self
            .extensions
            .iter()
            .any(|extension| source.ends_with(extension.as_str()))
        {
            return self
                .environment
                .get_template(source)
                .and_then(|template| template.render(&self.context))
                .map(Json::from)
                .map_err(|error| self.describe(field, source, &error));
        }
        if !self.native {
            return if source.contains('{') {
                self.render_text(field, source).map(Json::from)
            } else {
                Ok(without_last_newline(source).into())
            };
        }
        let rewritten = operators::rewrite(source);
        let value = match single_expression(&rewritten) {
            Some(expression) => self
                .environment
                .compile_expression(expression)
                .and_then(|expression| expression.eval(&self.context))
                .and_then(|value| {
                    if value.is_undefined() {
                        Err(Error::from(ErrorKind::UndefinedError))
                    } else {
                        Ok(value)
                    }
                })
                .map_err(|error| self.describe(field, expression, &error))?,
            None => self.render_text(field, source)?.into(),
        };
        Ok(match value.as_str() {
            Some(text) => literal::parse(text).unwrap_or_else(|| text.into()),
            None => values::to_wire(&value),
        })
    }
}

impl Templates {
    fn describe(&self, field: &str, source: &str, error: &Error) -> TemplateError {
        let mut described = describe(field, source, error);
        if error.kind() == ErrorKind::UndefinedError
            && let Some(name) = self.undefined_name(source, error)
        {
            described.message = format!("'{name}' is undefined");
        }
        described
    }

    /// The one name of a template that is not there, where the error has a whole expression and no name.
    fn undefined_name(&self, source: &str, error: &Error) -> Option<String> {
        let place = error.range().and_then(|range| source.get(range));
        let is_name = |text: &str| {
            text.chars()
                .all(|c| c.is_alphanumeric() || "_.[]'\"".contains(c))
        };
        if place.is_some_and(|text| is_name(text.trim())) {
            return None;
        }
        let template = self.environment.template_from_str(source).ok()?;
        let names = template.undeclared_variables(false);
        let mut missing = names.into_iter().filter(|name| {
            let found = self.context.get_attr(name);
            found.is_ok_and(|value| value.is_undefined())
                && !self.environment.globals().any(|(known, _)| known == name)
        });
        let name = missing.next()?;
        missing.next().is_none().then_some(name)
    }
}

fn without_last_newline(source: &str) -> &str {
    source
        .strip_suffix("\r\n")
        .or_else(|| source.strip_suffix('\n'))
        .unwrap_or(source)
}

/// The expression of a template that is nothing but `{{ one expression }}`.
fn single_expression(source: &str) -> Option<&str> {
    let inner = source.strip_prefix("{{")?.strip_suffix("}}")?;
    (!inner.contains("{{") && !inner.contains("{%")).then_some(inner.trim_matches(['-', ' ', '\n']))
}

fn load(searchpath: &[PathBuf], name: &str) -> Result<Option<String>, Error> {
    let outside = |part| {
        !matches!(
            part,
            std::path::Component::Normal(_) | std::path::Component::CurDir
        )
    };
    if std::path::Path::new(name).components().any(outside) {
        return Ok(None);
    }
    for folder in searchpath {
        match std::fs::read_to_string(folder.join(name)) {
            Ok(text) => return Ok(Some(operators::rewrite(&text))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(Error::new(
                    ErrorKind::InvalidOperation,
                    format!("template file {name:?} can't be read: {error}"),
                ));
            }
        }
    }
    Ok(None)
}

fn arithmetic(state: &State, a: &Value, b: &Value, subtract: bool) -> Result<Value, Error> {
    if let Some(value) = add_or_subtract(a, b, subtract) {
        return Ok(value);
    }
    if a.is_undefined() || b.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    let expression = state
        .env()
        .compile_expression(if subtract { "a - b" } else { "a + b" })?;
    expression.eval(context! { a, b })
}

/// Python's `%`: on text it fills in a format, on numbers it is the remainder.
fn modulo(state: &State, left: Value, spread: bool, operands: Rest<Value>) -> Result<Value, Error> {
    let undefined = |value: &Value| value.is_undefined();
    if undefined(&left) || operands.iter().any(undefined) {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    let Some(text) = left.as_str() else {
        let expression = state.env().compile_expression("a % b")?;
        let right = operands.first().cloned().unwrap_or_default();
        return expression.eval(context! { a => left, b => right });
    };
    let [one] = operands.as_slice() else {
        return percent::format(text, &Operand::Tuple(&operands)).map(Value::from);
    };
    if spread {
        return percent::format(text, &Operand::Tuple(&operands)).map(Value::from);
    }
    let filled = percent::format(text, &Operand::One(one));
    // A variable may hold what was a tuple: minijinja has lists only.
    let filled = match filled {
        Err(_) if one.kind() == ValueKind::Seq => {
            percent::format(text, &Operand::Tuple(&one.try_iter()?.collect::<Vec<_>>()))
        }
        other => other,
    };
    filled.map(Value::from)
}

fn add_filters(environment: &mut Environment<'static>) {
    let date_filter = |pattern: &'static str| {
        move |value: Value| -> Result<Value, Error> {
            if value.is_none() {
                return Ok(value);
            }
            if let Some(at) = value.downcast_object_ref::<PyDateTime>() {
                return Ok(match pattern {
                    "ts" => at.isoformat("T").into(),
                    "ts_nodash_with_tz" => at.isoformat("T").replace(['-', ':'], "").into(),
                    pattern => at.strftime(pattern)?.into(),
                });
            }
            match value.downcast_object_ref::<PyDate>() {
                Some(day) if pattern.starts_with("ts") => Ok(day.0.to_string().into()),
                Some(day) => day.strftime(pattern).map(Value::from),
                None => Err(Error::new(
                    ErrorKind::InvalidOperation,
                    "this filter needs a date or a datetime",
                )),
            }
        }
    };
    environment.add_filter("ds", date_filter("%Y-%m-%d"));
    environment.add_filter("ds_nodash", date_filter("%Y%m%d"));
    environment.add_filter("ts", date_filter("ts"));
    environment.add_filter("ts_nodash", date_filter("%Y%m%dT%H%M%S"));
    environment.add_filter("ts_nodash_with_tz", date_filter("ts_nodash_with_tz"));
    environment.add_filter("string", |value: Value| values::text(&value));
    environment.add_filter("join", join);
    environment.add_filter("tojson", |value: Value, indent: Option<usize>| {
        let wire = objects::sorted(objects::plain(&values::to_wire(&value)));
        let text = match indent {
            Some(_) => serde_json::to_string_pretty(&wire)
                .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?,
            None => dumps(
                &wire,
                JsonStyle {
                    item_separator: ", ",
                    key_separator: ": ",
                    ensure_ascii: true,
                },
            ),
        };
        let text = text
            .replace('<', "\\u003c")
            .replace('>', "\\u003e")
            .replace('&', "\\u0026")
            .replace('\'', "\\u0027");
        Ok::<_, Error>(text)
    });
}

fn join(items: Value, separator: Option<Value>, kwargs: Kwargs) -> Result<String, Error> {
    let named = kwargs.get::<Option<Value>>("d")?;
    let attribute = kwargs.get::<Option<String>>("attribute")?;
    kwargs.assert_all_used()?;
    let separator = separator
        .or(named)
        .map(|value| values::text(&value))
        .unwrap_or_default();
    if items.kind() == ValueKind::String {
        let characters: Vec<_> = items
            .as_str()
            .unwrap_or_default()
            .chars()
            .map(String::from)
            .collect();
        return Ok(characters.join(&separator));
    }
    let mut texts = Vec::new();
    for item in items.try_iter()? {
        let item = match &attribute {
            Some(attribute) => item.get_attr(attribute)?,
            None => item,
        };
        texts.push(values::text(&item));
    }
    Ok(texts.join(&separator))
}

/// Says in Jinja's words what went wrong, and where.
fn describe(field: &str, source: &str, error: &Error) -> TemplateError {
    let (class, message) = match error.kind() {
        ErrorKind::UndefinedError => {
            let expression = error
                .range()
                .and_then(|range| source.get(range))
                .map(str::trim);
            let message = match (expression, error.detail()) {
                (Some(expression), _) if !expression.is_empty() => {
                    format!("'{expression}' is undefined")
                }
                (_, Some(detail)) => detail.to_owned(),
                _ => "an undefined value is used".to_owned(),
            };
            ("jinja2.exceptions.UndefinedError", message)
        }
        ErrorKind::SyntaxError => ("jinja2.exceptions.TemplateSyntaxError", with_line(error)),
        ErrorKind::TemplateNotFound => ("jinja2.exceptions.TemplateNotFound", source.to_owned()),
        _ => ("jinja2.exceptions.TemplateRuntimeError", with_line(error)),
    };
    TemplateError {
        field: field.to_owned(),
        class,
        message,
    }
}

fn with_line(error: &Error) -> String {
    let mut text = error
        .detail()
        .map_or_else(|| error.kind().to_string(), ToOwned::to_owned);
    if let Some(line) = error.line() {
        text = format!("{text} (line {line} of the template)");
    }
    text
}
