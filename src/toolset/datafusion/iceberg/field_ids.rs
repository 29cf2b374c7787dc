//! Columns by their ids: an Iceberg table's columns may be renamed and reordered, and its older files stay as they are.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult as _, TreeNode as _};
use datafusion::common::{DataFusionError, plan_err};
use datafusion::parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapter, PhysicalExprAdapter, PhysicalExprAdapterFactory,
};

/// Makes adapters that find a table's column in a file by the field id, not by the name.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldIdAdapterFactory;

impl PhysicalExprAdapterFactory for FieldIdAdapterFactory {
    fn create(
        &self,
        logical_file_schema: SchemaRef,
        physical_file_schema: SchemaRef,
    ) -> Result<Arc<dyn PhysicalExprAdapter>, DataFusionError> {
        let renamed = renamed(logical_file_schema.fields(), physical_file_schema.fields())?;
        let by_name =
            DefaultPhysicalExprAdapter::new(logical_file_schema, Arc::new(Schema::new(renamed)));
        Ok(Arc::new(FieldIdAdapter {
            by_name,
            physical_file_schema,
        }))
    }
}

fn id(field: &Field) -> Option<&str> {
    field
        .metadata()
        .get(PARQUET_FIELD_ID_META_KEY)
        .map(String::as_str)
}

/// A file's fields under the names that the table has for their ids.
fn renamed(table: &Fields, file: &Fields) -> Result<Fields, DataFusionError> {
    let fields = file.iter().enumerate().map(|(index, field)| {
        let Some(field_id) = id(field) else {
            return plan_err!(
                "a data file has no field id for its column {:?}: it was not written for Iceberg, and which column it \
                 is can't be said for sure. Rewrite the table's data files",
                field.name()
            );
        };
        let known = table.iter().find(|known| id(known) == Some(field_id));
        let name = match known {
            Some(known) => {
                check_nested(known, field)?;
                known.name().clone()
            }
            // A column that the table has dropped; no column's name has such a character.
            None => format!("\u{0}{index}"),
        };
        Ok(field.as_ref().clone().with_name(name))
    });
    fields.collect::<Result<Vec<_>, _>>().map(Fields::from)
}

/// Inside a column fields are found by name, so names must mean the same fields there.
fn check_nested(table: &Field, file: &Field) -> Result<(), DataFusionError> {
    match (table.data_type(), file.data_type()) {
        (DataType::Struct(known), DataType::Struct(written)) => {
            for field in known {
                let same_id = written.iter().find(|other| id(other) == id(field));
                let same_name = written.iter().find(|other| other.name() == field.name());
                match (same_id, same_name) {
                    (Some(other), _) if other.name() == field.name() => check_nested(field, other)?,
                    (None, None) => {}
                    _ => {
                        return plan_err!(
                            "the field {:?} of column {:?} was renamed after data files were written, which is not \
                             followed inside a column. Rewrite the table's data files",
                            field.name(),
                            table.name()
                        );
                    }
                }
            }
            Ok(())
        }
        (DataType::Map(known, _), DataType::Map(written, _)) => {
            let parts = |entries: &Field| match entries.data_type() {
                DataType::Struct(parts) => parts.clone(),
                _ => Fields::empty(),
            };
            let (known, written) = (parts(known), parts(written));
            known
                .iter()
                .zip(&written)
                .try_for_each(|(known, written)| check_nested(known, written))
        }
        (
            DataType::List(known),
            DataType::List(written) | DataType::LargeList(written) | DataType::ListView(written),
        ) => check_nested(known, written),
        _ => Ok(()),
    }
}

#[derive(Debug)]
struct FieldIdAdapter {
    by_name: DefaultPhysicalExprAdapter,
    physical_file_schema: SchemaRef,
}

impl PhysicalExprAdapter for FieldIdAdapter {
    fn rewrite(
        &self,
        expr: Arc<dyn PhysicalExpr>,
    ) -> Result<Arc<dyn PhysicalExpr>, DataFusionError> {
        let rewritten = self.by_name.rewrite(expr)?;
        // Back to the names in the file; the places are its own already.
        rewritten
            .transform(|expr| {
                let Some(column) = expr.downcast_ref::<Column>() else {
                    return Ok(Transformed::no(expr));
                };
                let index = column.index();
                match self.physical_file_schema.fields().get(index) {
                    Some(field) if field.name() != column.name() => {
                        Ok(Transformed::yes(Arc::new(Column::new(field.name(), index))))
                    }
                    _ => Ok(Transformed::no(expr)),
                }
            })
            .data()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn field(name: &str, id: i64, data_type: DataType) -> Field {
        let ids = HashMap::from([(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())]);
        Field::new(name, data_type, true).with_metadata(ids)
    }

    fn schema(fields: Vec<Field>) -> SchemaRef {
        Arc::new(Schema::new(fields))
    }

    #[test]
    fn a_renamed_column_is_found_by_its_id_and_another_of_the_old_name_is_not() {
        let table = schema(vec![
            field("name", 4, DataType::Utf8),
            field("title", 2, DataType::Utf8),
        ]);
        let file = schema(vec![field("name", 2, DataType::Utf8)]);
        let adapter = FieldIdAdapterFactory.create(table, file).unwrap();
        let title = adapter.rewrite(Arc::new(Column::new("title", 1))).unwrap();
        assert_eq!(
            title.downcast_ref::<Column>(),
            Some(&Column::new("name", 0))
        );
        let name = adapter.rewrite(Arc::new(Column::new("name", 0))).unwrap();
        assert!(name.downcast_ref::<Column>().is_none(), "{name:?}");
    }

    #[test]
    fn a_file_without_ids_and_a_renamed_nested_field_are_refused() {
        let refusal = |table: Vec<Field>, file: Vec<Field>| {
            let adapter = FieldIdAdapterFactory.create(schema(table), schema(file));
            adapter.unwrap_err().to_string()
        };
        let plain = Field::new("a", DataType::Int64, true);
        let told = refusal(vec![field("a", 1, DataType::Int64)], vec![plain]);
        assert!(told.contains("has no field id for its column \"a\""));
        let inside = |name: &str| DataType::Struct(vec![field(name, 2, DataType::Int64)].into());
        let told = refusal(
            vec![field("s", 1, inside("new"))],
            vec![field("s", 1, inside("old"))],
        );
        assert!(told.contains("the field \"new\" of column \"s\" was renamed"));
    }
}
