//! A table of given files for DataFusion.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{DataFusionError, Statistics};
use datafusion::datasource::file_format::FileFormat as _;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use object_store::ObjectMeta;
use object_store::path::Path;

use super::field_ids::FieldIdAdapterFactory;

/// A data file in the table's store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::toolset::datafusion) struct IcebergFile {
    pub location: Path,
    pub record_count: u64,
    pub size: u64,
}

/// The Parquet files of a snapshot, read by the table's schema.
#[derive(Debug)]
pub(in crate::toolset::datafusion) struct IcebergTable {
    schema: SchemaRef,
    store: ObjectStoreUrl,
    files: Vec<IcebergFile>,
}

impl IcebergTable {
    /// `schema` has the id of each field in its metadata.
    pub fn new(schema: SchemaRef, store: ObjectStoreUrl, files: Vec<IcebergFile>) -> Self {
        Self {
            schema,
            store,
            files,
        }
    }

    fn statistics(&self, rows: u64) -> Statistics {
        let rows = usize::try_from(rows).map_or(Precision::Absent, Precision::Exact);
        Statistics::new_unknown(&self.schema).with_num_rows(rows)
    }

    fn partitioned(&self, file: &IcebergFile) -> PartitionedFile {
        let meta = ObjectMeta {
            location: file.location.clone(),
            // A data file never changes once it is written.
            last_modified: chrono::DateTime::UNIX_EPOCH,
            size: file.size,
            e_tag: None,
            version: None,
        };
        PartitionedFile::new_from_meta(meta)
            .with_statistics(Arc::new(self.statistics(file.record_count)))
    }
}

#[async_trait]
impl TableProvider for IcebergTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        // Without a filter the first files with enough rows are enough.
        let enough = limit
            .filter(|_| filters.is_empty())
            .and_then(|limit| u64::try_from(limit).ok());
        let mut rows = 0;
        let mut wanted = Vec::new();
        for file in &self.files {
            if enough.is_some_and(|enough| rows >= enough) {
                break;
            }
            rows = u64::saturating_add(rows, file.record_count);
            wanted.push(self.partitioned(file));
        }
        if wanted.is_empty() {
            let schema = match projection {
                Some(columns) => Arc::new(self.schema.project(columns)?),
                None => self.schema(),
            };
            return Ok(Arc::new(EmptyExec::new(schema)));
        }
        let format =
            ParquetFormat::new().with_options(state.default_table_options().parquet.clone());
        let source = format.file_source(TableSchema::from(self.schema()));
        let groups = FileGroup::new(wanted).split_files(state.config().target_partitions());
        let config = FileScanConfigBuilder::new(self.store.clone(), source)
            .with_file_groups(groups)
            .with_statistics(self.statistics(rows))
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .with_expr_adapter(Some(Arc::new(FieldIdAdapterFactory)))
            .build();
        format.create_physical_plan(state, config).await
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>, DataFusionError> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}
