//! `updraft pack`: this program as an executable bundle, which any executor's Python supervisor can start.

use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;

use super::check::{self, FileReport};
use crate::airflow::config::Config;
use crate::airflow::executable_bundle::{self, ExecutableBundle, Manifest};

/// Pack this program as an executable bundle (AFBNDL01) for the tasks of a Dag folder that run natively.
///
/// Airflow's ExecutableCoordinator starts such a file for the tasks of a queue, under any executor and without Updraft's
/// worker: docs/executors.md. The Dag files are not in it; pack again when Dags come or go.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "updraft pack --dags-folder <DAGS> --output <FILE>\n       updraft pack --inspect <FILE>"
)]
pub struct Arguments {
    /// The Dag folder, or one Dag file.
    #[arg(
        long,
        value_name = "DAGS",
        required_unless_present = "inspect",
        requires = "output"
    )]
    dags_folder: Option<PathBuf>,
    /// The file to write; it replaces one that is there.
    #[arg(long, short, value_name = "FILE", requires = "dags_folder")]
    output: Option<PathBuf>,
    /// Say what a bundle holds, and whether it is whole.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dags_folder", "output"])]
    inspect: Option<PathBuf>,
}

/// Packs or inspects.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments {
        Arguments {
            inspect: Some(file),
            ..
        } => inspect(&file),
        Arguments {
            dags_folder: Some(dags),
            output: Some(output),
            ..
        } => pack(&dags, &output),
        // The parser sees to it that one of the two is there.
        _ => anyhow::bail!("--dags-folder and --output, or --inspect"),
    }
}

fn pack(dags_folder: &Path, output: &Path) -> anyhow::Result<ExitCode> {
    let folder = dags_folder
        .canonicalize()
        .with_context(|| format!("{} can't be read", dags_folder.display()))?;
    let mut config = Config::from_env();
    if folder.is_dir() {
        config = config.with_flag("core", "dags_folder", folder.display().to_string());
    }
    let files = check::check_files(&folder, &Arc::new(config))?;
    let dags = native_dags(&files);
    anyhow::ensure!(
        !dags.is_empty(),
        "no Dag under {} has a task that runs natively: `updraft check` says why",
        dags_folder.display()
    );
    let program = std::env::current_exe().context("this program's own file can't be found")?;
    write(&program, &Manifest::new(&dags), output)
        .with_context(|| format!("{} can't be written", output.display()))?;
    say_what_is_left_out(&files);
    let tasks: usize = dags.values().map(Vec::len).sum();
    outln!("{}: {tasks} tasks of {} Dags", output.display(), dags.len());
    Ok(ExitCode::SUCCESS)
}

/// Dags with tasks that run natively: ids of Dags, each with ids of those tasks.
fn native_dags(files: &[FileReport]) -> BTreeMap<String, Vec<String>> {
    let mut dags = BTreeMap::new();
    for dag in files.iter().flat_map(|file| &file.dags) {
        let tasks = dag.tasks.iter().filter(|task| task.native);
        let tasks: Vec<String> = tasks.map(|task| task.task_id.clone()).collect();
        if !tasks.is_empty() {
            dags.insert(dag.dag_id.clone(), tasks);
        }
    }
    dags
}

fn say_what_is_left_out(files: &[FileReport]) {
    for file in files {
        if let Some(error) = &file.error {
            eprintln!("warning: {} is left out: {error}", file.file);
        }
        for dag in &file.dags {
            for task in dag.tasks.iter().filter(|task| !task.native) {
                eprintln!(
                    "warning: {}.{} needs a queue that no coordinator is named for: {}",
                    dag.dag_id,
                    task.task_id,
                    task.reason.as_deref().unwrap_or_default()
                );
            }
        }
    }
}

/// Writes beside the output and renames: a supervisor that looks meanwhile sees the old file or the new one.
fn write(program: &Path, manifest: &Manifest, output: &Path) -> anyhow::Result<()> {
    let mut program = File::open(program)?;
    // A packed program packs itself without its old footer.
    let length = match ExecutableBundle::read(&mut program)? {
        Some(bundle) => bundle.executable_len,
        None => program.metadata()?.len(),
    };
    std::io::Seek::rewind(&mut program)?;
    let folder = output
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".updraft-pack-")
        // Not executable before it is whole: then nobody takes it for a bundle.
        .permissions(Permissions::from_mode(0o600))
        .tempfile_in(folder)?;
    let mut writer = BufWriter::new(file.as_file_mut());
    executable_bundle::write(&mut program, length, manifest, &mut writer)?;
    writer.flush()?;
    drop(writer);
    file.as_file().sync_all()?;
    file.as_file()
        .set_permissions(Permissions::from_mode(0o755))?;
    file.persist(output)?;
    Ok(())
}

fn inspect(path: &Path) -> anyhow::Result<ExitCode> {
    let named = || format!("{}", path.display());
    let mut file = File::open(path).with_context(named)?;
    let bundle = ExecutableBundle::read(&mut file)
        .with_context(named)?
        .with_context(|| {
            format!(
                "{} is no executable bundle: it has no AFBNDL01 footer",
                path.display()
            )
        })?;
    outln!("executable: {} bytes", bundle.executable_len);
    outln!("source: {} bytes", bundle.source_len);
    outln!("{}", bundle.manifest.to_yaml().trim_end());
    let mut faults = Vec::new();
    faults.extend(bundle.verify(&mut file).err());
    faults.extend(bundle.manifest.negotiate().err());
    for fault in &faults {
        eprintln!("error: {}: {fault}", path.display());
    }
    let executable = file.metadata()?.permissions().mode() & 0o111 != 0;
    if !executable {
        eprintln!(
            "error: {} is not executable: nobody takes it for a bundle before `chmod +x`",
            path.display()
        );
    }
    if faults.is_empty() && executable {
        outln!("whole: the executable is the one that was packed");
        Ok(ExitCode::SUCCESS)
    } else {
        Ok(ExitCode::FAILURE)
    }
}
