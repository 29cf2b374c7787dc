//! DataFusion with a Dag's sources as its tables, within bounds of memory, disk and threads.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, TableReference};
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{DataFrame, SQLOptions, SessionConfig, SessionContext};
use futures::StreamExt as _;

use super::iceberg::{self, IcebergTable};
use super::listing::{Listing, ListingError, Place};
use super::misfit::{self, Misfit};
use super::options::FileOptions;
use super::source::{DataSourceConfig, DataSourceError, FileFormatName, StorageType};
use super::stores::{self, StoreRefusal};
use super::threads::{Threads, ThreadsError};
use super::type_name::{python_name, schema_text};
use super::value::{self, ValueError};
use crate::airflow::config::Environment;
use crate::airflow::python_text::repr_str;
use crate::hook::{Cell, Column, ConnectionSource, ResultSet, blocking};
use crate::toolset::sql::Mask;
use crate::toolset::work_folder::WorkFolder;

/// Airflow's logger for the same events.
const LOGGER: &str = "airflow.providers.common.sql.datafusion.engine.DataFusionEngine";
/// Bytes that the queries of one task may spill.
const MAX_SPILLED: u64 = 10 << 30;
/// The largest consumers of memory that an error names.
const NAMED_CONSUMERS: NonZeroUsize = NonZeroUsize::new(3).unwrap();
/// Columns of one query that may turn out to be text.
const MAX_TEXT_COLUMNS: usize = 32;

/// What an engine gets from the worker around it.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// Bytes of memory for sorting, grouping and joining; more goes to disk, or is an error where an operator can't.
    pub memory_limit: usize,
    /// The worker's variables: stores are opened with them where a connection brings no credential.
    pub environment: Environment,
}

impl EngineSettings {
    /// 256 MiB, and the variables given.
    #[must_use]
    pub fn new(environment: Environment) -> Self {
        Self {
            memory_limit: 256 << 20,
            environment,
        }
    }
}

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum EngineError {
    #[error(transparent)]
    Source(#[from] DataSourceError),
    #[error(
        "DataSourceConfig for table {0} has no uri or format; DataFusionEngine only registers object-store or \
         catalog-managed sources."
    )]
    NoFiles(String),
    #[error(transparent)]
    Store(#[from] StoreRefusal),
    #[error("Table {name} already registered for {uri}, please choose different name")]
    Twice { name: String, uri: String },
    #[error("Unsupported format: {0}")]
    Format(String),
    #[error("Failed to register {format} data source: {reason}")]
    Registration {
        format: &'static str,
        reason: String,
    },
    #[error("Failed to register Iceberg table '{table}' from connection '{conn_id}': {reason}")]
    Iceberg {
        table: String,
        conn_id: String,
        reason: String,
    },
    #[error(
        "there is no temporary folder for queries: {0}. Set TMPDIR to a folder that the worker may write to."
    )]
    Folder(std::io::Error),
    #[error(transparent)]
    Threads(#[from] ThreadsError),
    #[error("{}", .0.strip_backtrace())]
    Engine(#[from] DataFusionError),
}

/// Why a query gave nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum QueryError {
    #[error("{}", .0.strip_backtrace())]
    Engine(#[from] DataFusionError),
    #[error(transparent)]
    Value(#[from] ValueError),
    #[error(transparent)]
    Threads(#[from] ThreadsError),
}

/// What came of a query.
pub(super) struct Answer {
    pub result: Result<ResultSet, QueryError>,
    /// What the model should know beside the rows.
    pub notes: Vec<String>,
}

/// A session with its tables.
pub(super) struct Engine {
    context: SessionContext,
    threads: Threads,
    /// The tables over files, by their names in the catalogue.
    listings: Mutex<BTreeMap<String, Listing>>,
    /// What is to be said of a table whenever it is described.
    notes: Mutex<BTreeMap<String, Vec<String>>>,
    mask: Mask,
    /// Where queries spill.
    _folder: WorkFolder,
}

impl Engine {
    /// A session with all sources registered, one after the other.
    pub async fn build(
        sources: &[DataSourceConfig],
        connections: &dyn ConnectionSource,
        settings: &EngineSettings,
        mask: Mask,
    ) -> Result<Self, EngineError> {
        let folder = match blocking::run(WorkFolder::new).await {
            Ok(folder) => folder.map_err(EngineError::Folder)?,
            Err(error) => return Err(EngineError::Folder(error.into())),
        };
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let config = SessionConfig::new()
            .with_target_partitions(cores)
            .with_information_schema(true);
        let engine = Self {
            context: SessionContext::new_with_config_rt(config, runtime(&folder, settings)?),
            threads: Threads::start(cores)?,
            listings: Mutex::default(),
            notes: Mutex::default(),
            mask,
            _folder: folder,
        };
        let mut registration = Registration {
            connections,
            environment: &settings.environment,
            uris: BTreeMap::new(),
            stores: BTreeMap::new(),
        };
        for source in sources {
            engine.register(source, &mut registration).await?;
        }
        Ok(engine)
    }

    async fn register(
        &self,
        source: &DataSourceConfig,
        registration: &mut Registration<'_>,
    ) -> Result<(), EngineError> {
        if source.is_table_provider() {
            registration.note(source)?;
            return self.register_iceberg(source, registration).await;
        }
        let Some(storage) = source.storage()? else {
            return Err(EngineError::NoFiles(repr_str(&source.table_name)));
        };
        let place = self.place(source, storage, registration).await?;
        registration.note(source)?;
        let format = FileFormatName::of(&source.format)
            .ok_or_else(|| EngineError::Format(source.format.to_lowercase()))?;
        let failed = |reason: String| EngineError::Registration {
            format: format.python_name(),
            reason,
        };
        let options = FileOptions::read(format, &source.uri, &source.options)
            .map_err(|error| failed(error.to_string()))?;
        let name = TableReference::from(source.table_name.as_str());
        let listing = {
            let (context, name) = (self.context.clone(), name.clone());
            let opened = self
                .threads
                .run(async move { Listing::open(&context, &name, &place, &options).await });
            opened
                .await?
                .map_err(|error: ListingError| failed(error.to_string()))?
        };
        self.context
            .register_table(name.clone(), listing.table(&self.context)?)
            .map_err(|error| failed(error.strip_backtrace()))?;
        lock(&self.listings).insert(name.table().to_owned(), listing);
        say_registered(source);
        Ok(())
    }

    async fn register_iceberg(
        &self,
        source: &DataSourceConfig,
        registration: &mut Registration<'_>,
    ) -> Result<(), EngineError> {
        let failed = |reason: String| EngineError::Iceberg {
            table: source.table_name.clone(),
            conn_id: source.conn_id.clone(),
            reason,
        };
        let opened = iceberg::open(source, registration.connections, registration.environment);
        let current = opened.await.map_err(|error| failed(error.to_string()))?;
        let store = match current.store {
            None => ObjectStoreUrl::local_filesystem(),
            Some((root, store)) => {
                // A catalog has credentials of its own for each table.
                let owner = format!("{} {}", source.conn_id, source.table_name);
                let url = ObjectStoreUrl::parse(registration.root(&root, &owner))?;
                self.context.register_object_store(url.as_ref(), store);
                url
            }
        };
        let table = IcebergTable::new(current.schema, store, current.files);
        let name = TableReference::from(source.table_name.as_str());
        self.context
            .register_table(name, Arc::new(table))
            .map_err(|error| failed(error.strip_backtrace()))?;
        say_registered(source);
        Ok(())
    }

    /// Where a source's files are. Its store is registered with the session.
    async fn place(
        &self,
        source: &DataSourceConfig,
        storage: StorageType,
        registration: &mut Registration<'_>,
    ) -> Result<Place, EngineError> {
        // DataFusion brings the local store.
        if storage == StorageType::Local {
            return Ok(Place::local(&source.uri)?);
        }
        let opened = stores::open(
            source,
            storage,
            registration.connections,
            registration.environment,
        )
        .await?;
        let root = registration.root(&opened.root, &source.conn_id);
        let url = ObjectStoreUrl::parse(&root)?;
        self.context
            .register_object_store(url.as_ref(), opened.store);
        tracing::info!(
            target: "airflow.task", logger = LOGGER, "Registered object store for {}", opened.root
        );
        Ok(Place::remote(&root, &opened.path, &opened.root)?)
    }

    /// The tables, sorted: the catalogue has no order.
    pub fn table_names(&self) -> Vec<String> {
        let config = self.context.copied_config();
        let catalog = &config.options().catalog;
        let mut names = self
            .context
            .catalog(&catalog.default_catalog)
            .and_then(|found| found.schema(&catalog.default_schema))
            .map_or_else(Vec::new, |schema| schema.table_names());
        names.sort();
        names
    }

    /// The columns of a table with what else is to be said of it; `None` when there is no such table.
    pub async fn columns(
        &self,
        table_name: &str,
    ) -> Result<Option<(Vec<Column>, Vec<String>)>, EngineError> {
        let name = TableReference::from(table_name);
        if !self.context.table_exist(name.clone()).unwrap_or(false) {
            return Ok(None);
        }
        let schema = self.context.table_provider(name.clone()).await?.schema();
        let columns = schema.fields().iter().map(|field| Column {
            name: field.name().clone(),
            type_text: python_name(field.data_type()),
        });
        let notes = lock(&self.notes).get(name.table()).cloned();
        Ok(Some((columns.collect(), notes.unwrap_or_default())))
    }

    /// The schema of a table as `DataFusionEngine.get_schema` gives it.
    pub async fn schema_text(&self, table_name: &str) -> Result<String, EngineError> {
        let name = TableReference::from(table_name);
        let table = self.context.table_provider(name).await?;
        Ok(schema_text(&table.schema()))
    }

    /// Runs one statement and takes at most `limit` rows from it.
    ///
    /// A column of a CSV file that turns out not to hold what its first rows did is read as text, and the statement
    /// runs again.
    pub async fn query(&self, sql: &str, limit: usize, allow_writes: bool) -> Answer {
        let mut notes = Vec::new();
        loop {
            let (context, text) = (self.context.clone(), sql.to_owned());
            let ran = self
                .threads
                .run(async move { run(&context, &text, limit, allow_writes).await });
            let (error, scanned) = match ran.await {
                Ok(Ok(result)) => {
                    return Answer {
                        result: Ok(result),
                        notes,
                    };
                }
                Ok(Err((QueryError::Engine(error), scanned))) => (error, scanned),
                Ok(Err((error, _))) => {
                    return Answer {
                        result: Err(error),
                        notes,
                    };
                }
                Err(error) => {
                    return Answer {
                        result: Err(error.into()),
                        notes,
                    };
                }
            };
            let note = match misfit::find(&error) {
                Some(misfit) if notes.len() < MAX_TEXT_COLUMNS => {
                    self.read_as_text(&misfit, &scanned).await
                }
                _ => None,
            };
            match note {
                Some(note) => notes.push(note),
                None => {
                    return Answer {
                        result: Err(error.into()),
                        notes,
                    };
                }
            }
        }
    }

    /// Makes the column that a value did not fit a text column. `None` when it is not found.
    async fn read_as_text(&self, misfit: &Misfit, scanned: &[String]) -> Option<String> {
        let mut suspects: Vec<(String, Listing)> = {
            let listings = lock(&self.listings);
            let suspects = listings
                .iter()
                .filter(|(name, listing)| scanned.contains(name) && misfit.may_be_of(listing));
            suspects
                .map(|(name, listing)| (name.clone(), listing.clone()))
                .collect()
        };
        let (name, listing) = if suspects.len() > 1 {
            self.culprit(misfit, suspects).await?
        } else {
            suspects.pop()?
        };
        let field = listing.file_schema.fields().get(misfit.column)?.clone();
        let listing = listing.with_text_column(misfit.column);
        let table = listing.table(&self.context).ok()?;
        let reference = TableReference::bare(name.as_str());
        self.context.deregister_table(reference.clone()).ok()?;
        self.context.register_table(reference, table).ok()?;
        lock(&self.listings).insert(name.clone(), listing);
        let note = misfit.note(&name, &field, &self.mask);
        lock(&self.notes)
            .entry(name)
            .or_default()
            .push(note.clone());
        Some(note)
    }

    /// The error names no table: where several could be meant, each is read until it fails.
    async fn culprit(
        &self,
        misfit: &Misfit,
        suspects: Vec<(String, Listing)>,
    ) -> Option<(String, Listing)> {
        for (name, listing) in suspects {
            let (context, column) = (self.context.clone(), misfit.column);
            let table = listing.table(&context).ok()?;
            let reads = self.threads.run(async move {
                let frame = context.read_table(table)?;
                let frame = match frame.schema().fields().get(column) {
                    Some(field) => {
                        let name = field.name().clone();
                        frame.select_columns(&[&name])?
                    }
                    None => frame,
                };
                let mut batches = frame.execute_stream().await?;
                while let Some(batch) = batches.next().await {
                    batch?;
                }
                Ok::<_, DataFusionError>(())
            });
            if matches!(reads.await, Ok(Err(error)) if misfit::find(&error).as_ref() == Some(misfit))
            {
                return Some((name, listing));
            }
        }
        None
    }
}

fn say_registered(source: &DataSourceConfig) {
    tracing::info!(
        target: "airflow.task",
        logger = LOGGER,
        "Registered data source format {} for table: {}",
        source.format,
        source.table_name
    );
}

/// What is known while sources are registered.
struct Registration<'a> {
    connections: &'a dyn ConnectionSource,
    environment: &'a Environment,
    /// By the tables' names.
    uris: BTreeMap<String, String>,
    /// By the root that a store is registered under, its own root and the connection that opened it.
    stores: BTreeMap<String, (String, String)>,
}

impl Registration<'_> {
    /// Takes the table's name, which must be new.
    fn note(&mut self, source: &DataSourceConfig) -> Result<(), EngineError> {
        let (name, uri) = (source.table_name.clone(), source.uri.clone());
        match self.uris.insert(name.clone(), uri) {
            None => Ok(()),
            Some(uri) => Err(EngineError::Twice { name, uri }),
        }
    }

    /// The root to register a store under. DataFusion knows one store for a bucket; where two connections lead to it,
    /// each gets a root of its own.
    fn root(&mut self, root: &str, conn_id: &str) -> String {
        let owner = (root.to_owned(), conn_id.to_owned());
        let mut candidate = root.to_owned();
        let mut number = 1;
        loop {
            // There may be a bucket of the name that was made up for another one.
            let taken = self.stores.entry(candidate.clone());
            if *taken.or_insert_with(|| owner.clone()) == owner {
                return candidate;
            }
            number += 1;
            candidate = format!("{root}.{number}");
        }
    }
}

fn runtime(
    folder: &WorkFolder,
    settings: &EngineSettings,
) -> Result<Arc<RuntimeEnv>, DataFusionError> {
    let disk = DiskManagerBuilder::default()
        .with_mode(DiskManagerMode::Directories(vec![folder.path().to_owned()]))
        .with_max_temp_directory_size(MAX_SPILLED);
    let pool = TrackConsumersPool::new(FairSpillPool::new(settings.memory_limit), NAMED_CONSUMERS);
    RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(pool))
        .with_disk_manager_builder(disk)
        // Another task may add files while this one runs.
        .with_object_list_cache_limit(0)
        .build_arc()
}

/// Runs a statement; an error comes with the tables that it scans.
async fn run(
    context: &SessionContext,
    sql: &str,
    limit: usize,
    allow_writes: bool,
) -> Result<ResultSet, (QueryError, Vec<String>)> {
    // The guard has looked at the text already; this looks at the plan.
    let allowed = SQLOptions::new()
        .with_allow_ddl(allow_writes)
        .with_allow_dml(allow_writes)
        .with_allow_statements(allow_writes);
    let frame = context
        .sql_with_options(sql, allowed)
        .await
        .map_err(|error| (error.into(), Vec::new()))?;
    let scanned = scanned_tables(frame.logical_plan());
    let frame = match takes_first_rows(frame.logical_plan()) {
        true => in_one_partition(frame),
        false => frame,
    };
    let rows = async {
        let mut batches = frame.limit(0, Some(limit))?.execute_stream().await?;
        let schema = batches.schema();
        let columns = schema.fields().iter().map(|field| field.name().clone());
        let mut result = ResultSet {
            columns: columns.collect(),
            ..ResultSet::default()
        };
        while result.rows.len() < limit
            && let Some(batch) = batches.next().await
        {
            add_rows(&batch?, limit, &mut result.rows)?;
        }
        Ok(result)
    };
    rows.await.map_err(|error: QueryError| (error, scanned))
}

fn add_rows(
    batch: &RecordBatch,
    limit: usize,
    rows: &mut Vec<Vec<Cell>>,
) -> Result<(), ValueError> {
    let wanted = limit.saturating_sub(rows.len()).min(batch.num_rows());
    for row in 0..wanted {
        let cells = batch.columns().iter();
        rows.push(
            cells
                .map(|column| value::cell(column, row))
                .collect::<Result<_, _>>()?,
        );
    }
    Ok(())
}

/// Does the statement take rows as they come? Then the first ones are all that is read.
fn takes_first_rows(plan: &LogicalPlan) -> bool {
    let mut only_rows = true;
    let walked = plan.apply_with_subqueries(|node| {
        only_rows &= matches!(
            node,
            LogicalPlan::Projection(_)
                | LogicalPlan::Limit(_)
                | LogicalPlan::SubqueryAlias(_)
                | LogicalPlan::TableScan(_)
        );
        Ok(TreeNodeRecursion::Continue)
    });
    only_rows && walked.is_ok()
}

/// Several partitions would each fetch a row group, and the rows of one are enough.
fn in_one_partition(frame: DataFrame) -> DataFrame {
    let (mut state, plan) = frame.into_parts();
    state.config_mut().options_mut().execution.target_partitions = 1;
    DataFrame::new(state, plan)
}

fn scanned_tables(plan: &LogicalPlan) -> Vec<String> {
    let mut tables = Vec::new();
    let walked = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            tables.push(scan.table_name.table().to_owned());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    if let Err(error) = walked {
        tracing::debug!("a plan can't be walked: {error}");
    }
    tables
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    struct Nobody;

    #[async_trait::async_trait]
    impl ConnectionSource for Nobody {
        async fn connection(
            &self,
            conn_id: &str,
        ) -> Result<crate::airflow::connection::Connection, crate::hook::ConnectionError> {
            Err(crate::hook::ConnectionError::NotDefined(conn_id.to_owned()))
        }
    }

    #[test]
    fn no_two_buckets_and_no_two_connections_share_a_root() {
        let mut registration = Registration {
            connections: &Nobody,
            environment: &Environment::default(),
            uris: BTreeMap::new(),
            stores: BTreeMap::new(),
        };
        let mut root = |root: &str, conn_id: &str| registration.root(root, conn_id);
        assert_eq!(root("s3://b", "one"), "s3://b");
        assert_eq!(root("s3://b", "two"), "s3://b.2");
        assert_eq!(root("s3://b.2", "two"), "s3://b.2.2");
        assert_eq!(root("s3://b", "two"), "s3://b.2");
        assert_eq!(root("s3://b", "one"), "s3://b");
    }

    #[tokio::test]
    async fn only_statements_that_take_rows_as_they_come_run_in_one_partition() {
        let context = SessionContext::new();
        let made = context
            .sql("CREATE TABLE t AS VALUES (1, 'a')")
            .await
            .unwrap();
        made.collect().await.unwrap();
        for (sql, expected) in [
            ("SELECT * FROM t", true),
            ("SELECT column1 + 1 FROM t AS u LIMIT 3 OFFSET 1", true),
            ("SELECT * FROM t WHERE column1 > 0", false),
            ("SELECT count(*) FROM t", false),
            ("SELECT * FROM t ORDER BY column1", false),
            ("SELECT (SELECT max(column1) FROM t) FROM t", false),
        ] {
            let plan = context.sql(sql).await.unwrap().into_unoptimized_plan();
            assert_eq!(takes_first_rows(&plan), expected, "{sql}");
        }
    }
}
