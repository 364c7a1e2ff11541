//! What is remembered of GPUs, hosts, file systems and disks from page to page, to compute metrics from.

use std::collections::HashMap;

use watchfire_core::{Labels, Time};

use super::slots::Output;

/// What a sample tells a computed metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feed {
    FbUsed,
    FbFree,
    FbReserved,
    FbTotal,
    GpuEnergy,
    GpuPower,
    CpuSeconds,
    MemoryAvailable,
    MemoryTotal,
    FsAvail,
    FsSize,
    FsFilesFree,
    FsFiles,
    DiskIo,
    TextfileMtime,
}

impl Feed {
    const WORDS: [(&'static str, Feed); 15] = [
        ("fb_used", Feed::FbUsed),
        ("fb_free", Feed::FbFree),
        ("fb_reserved", Feed::FbReserved),
        ("fb_total", Feed::FbTotal),
        ("gpu_energy", Feed::GpuEnergy),
        ("gpu_power", Feed::GpuPower),
        ("cpu_seconds", Feed::CpuSeconds),
        ("memory_available", Feed::MemoryAvailable),
        ("memory_total", Feed::MemoryTotal),
        ("fs_avail", Feed::FsAvail),
        ("fs_size", Feed::FsSize),
        ("fs_files_free", Feed::FsFilesFree),
        ("fs_files", Feed::FsFiles),
        ("disk_io", Feed::DiskIo),
        ("textfile_mtime", Feed::TextfileMtime),
    ];

    /// The feed that a mapping file calls `word`.
    pub fn of_word(word: &str) -> Option<Feed> {
        Feed::WORDS.into_iter().find(|(one, _)| *one == word).map(|(_, feed)| feed)
    }
}

/// A value that counts only for the page that had it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fresh {
    page: u64,
    value: f64,
}

impl Fresh {
    pub fn set(&mut self, page: u64, value: f64) {
        *self = Fresh { page, value };
    }

    pub fn get(self, page: u64) -> Option<f64> {
        (self.page == page && self.value.is_finite()).then_some(self.value)
    }
}

/// Things of one kind, found by their labels.
#[derive(Debug)]
pub(super) struct Group<T> {
    index: HashMap<Labels, u32>,
    pub items: Vec<T>,
}

impl<T> Default for Group<T> {
    fn default() -> Self {
        Group { index: HashMap::new(), items: Vec::new() }
    }
}

impl<T> Group<T> {
    /// The number of the thing with these labels, made by `new` where there is none.
    pub fn find(&mut self, key: Labels, new: impl FnOnce(&Labels) -> T) -> u32 {
        if let Some(&at) = self.index.get(&key) {
            return at;
        }
        let at = u32::try_from(self.items.len()).unwrap_or(u32::MAX);
        self.items.push(new(&key));
        self.index.insert(key, at);
        at
    }

    fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        self.items.get_mut(at as usize)
    }
}

/// One GPU of the target.
#[derive(Debug)]
pub(super) struct Gpu {
    pub key: Labels,
    pub labels: Labels,
    /// The last page that had it, and when.
    pub page: u64,
    pub seen: Time,
    /// The page that itself said whether the GPU is up.
    pub up_page: u64,
    pub up: Output,
    pub energy: Fresh,
    pub power: Fresh,
    pub last_energy: Option<f64>,
    /// Since when the energy counter has stood still while power was drawn.
    pub still_since: Option<Time>,
    pub frozen: Output,
}

impl Gpu {
    pub fn new(key: &Labels, labels: Labels) -> Self {
        Gpu {
            key: key.clone(),
            page: 0,
            seen: Time::EPOCH,
            up_page: 0,
            up: Output::new("gpu_up", labels.clone()),
            energy: Fresh::default(),
            power: Fresh::default(),
            last_energy: None,
            still_since: None,
            frozen: Output::new("gpu_source_frozen", labels.clone()),
            labels,
        }
    }

    /// Gives the GPU new labels (its index moved), where they differ.
    pub fn relabel(&mut self, labels: Labels) {
        if self.labels != labels {
            self.up = Output::new("gpu_up", labels.clone());
            self.frozen = Output::new("gpu_source_frozen", labels.clone());
            self.labels = labels;
        }
    }
}

/// The memory of one GPU or MIG instance.
#[derive(Debug)]
pub(super) struct Memory {
    pub used: Fresh,
    pub free: Fresh,
    pub reserved: Fresh,
    pub total: Fresh,
    pub ratio: Output,
    pub ratio_without_reserved: Output,
    pub total_out: Output,
}

/// The label that says that the reserved part of a GPU's memory is not in the denominator.
const DENOMINATOR: (&str, &str) = ("denominator", "used+free");

impl Memory {
    pub fn new(labels: &Labels) -> Self {
        let marked = labels.with(&Labels::new([DENOMINATOR]));
        Memory {
            used: Fresh::default(),
            free: Fresh::default(),
            reserved: Fresh::default(),
            total: Fresh::default(),
            ratio: Output::new("gpu_memory_used_ratio", labels.clone()),
            ratio_without_reserved: Output::new("gpu_memory_used_ratio", marked),
            total_out: Output::new("gpu_memory_total_bytes", labels.clone()),
        }
    }
}

/// One host of the target (a scraped page has one, an input may have many).
#[derive(Debug)]
pub(super) struct Host {
    pub cpu: Cpu,
    pub last_cpu: Option<Cpu>,
    pub cpu_busy: Output,
    pub available: Fresh,
    pub total: Fresh,
    pub available_ratio: Output,
}

impl Host {
    pub fn new(labels: &Labels) -> Self {
        Host {
            cpu: Cpu::default(),
            last_cpu: None,
            cpu_busy: Output::new("host_cpu_busy_ratio", labels.clone()),
            available: Fresh::default(),
            total: Fresh::default(),
            available_ratio: Output::new("host_memory_available_ratio", labels.clone()),
        }
    }
}

/// CPU seconds since boot, summed over all CPUs of a page.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cpu {
    pub page: u64,
    pub total: f64,
    pub idle: f64,
    /// How many CPUs and modes were summed.
    pub parts: u32,
}

impl Cpu {
    fn add(&mut self, page: u64, seconds: f64, idle: bool) {
        if self.page != page {
            *self = Cpu { page, ..Cpu::default() };
        }
        self.total += seconds;
        self.idle += if idle { seconds } else { 0.0 };
        self.parts += 1;
    }
}

/// One file system.
#[derive(Debug)]
pub(super) struct Filesystem {
    pub avail: Fresh,
    pub size: Fresh,
    pub files_free: Fresh,
    pub files: Fresh,
    pub avail_ratio: Output,
    pub files_free_ratio: Output,
}

impl Filesystem {
    pub fn new(labels: &Labels) -> Self {
        Filesystem {
            avail: Fresh::default(),
            size: Fresh::default(),
            files_free: Fresh::default(),
            files: Fresh::default(),
            avail_ratio: Output::new("filesystem_avail_ratio", labels.clone()),
            files_free_ratio: Output::new("filesystem_files_free_ratio", labels.clone()),
        }
    }
}

/// A growing or standing number of one thing: a disk's busy seconds, a text file's time.
#[derive(Debug)]
pub(super) struct Reading {
    pub now: Fresh,
    pub last: Option<(Time, f64)>,
    pub output: Output,
}

impl Reading {
    pub fn new(metric: &'static str, labels: &Labels) -> Self {
        Reading { now: Fresh::default(), last: None, output: Output::new(metric, labels.clone()) }
    }
}

/// Everything remembered.
#[derive(Debug, Default)]
pub(super) struct State {
    pub gpus: Group<Gpu>,
    pub memories: Group<Memory>,
    pub hosts: Group<Host>,
    pub filesystems: Group<Filesystem>,
    pub disks: Group<Reading>,
    pub textfiles: Group<Reading>,
}

/// A feed and which thing it is of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fed {
    pub feed: Feed,
    pub at: u32,
    /// Of CPU seconds: whether they were spent idle.
    pub idle: bool,
}

impl State {
    /// Takes a value in.
    pub fn take(&mut self, fed: Fed, page: u64, value: f64) {
        if !value.is_finite() {
            return;
        }
        let fresh = match fed.feed {
            Feed::CpuSeconds => {
                if let Some(host) = self.hosts.get_mut(fed.at) {
                    host.cpu.add(page, value, fed.idle);
                }
                return;
            }
            Feed::FbUsed => self.memories.get_mut(fed.at).map(|one| &mut one.used),
            Feed::FbFree => self.memories.get_mut(fed.at).map(|one| &mut one.free),
            Feed::FbReserved => self.memories.get_mut(fed.at).map(|one| &mut one.reserved),
            Feed::FbTotal => self.memories.get_mut(fed.at).map(|one| &mut one.total),
            Feed::GpuEnergy => self.gpus.get_mut(fed.at).map(|one| &mut one.energy),
            Feed::GpuPower => self.gpus.get_mut(fed.at).map(|one| &mut one.power),
            Feed::MemoryAvailable => self.hosts.get_mut(fed.at).map(|one| &mut one.available),
            Feed::MemoryTotal => self.hosts.get_mut(fed.at).map(|one| &mut one.total),
            Feed::FsAvail => self.filesystems.get_mut(fed.at).map(|one| &mut one.avail),
            Feed::FsSize => self.filesystems.get_mut(fed.at).map(|one| &mut one.size),
            Feed::FsFilesFree => self.filesystems.get_mut(fed.at).map(|one| &mut one.files_free),
            Feed::FsFiles => self.filesystems.get_mut(fed.at).map(|one| &mut one.files),
            Feed::DiskIo => self.disks.get_mut(fed.at).map(|one| &mut one.now),
            Feed::TextfileMtime => self.textfiles.get_mut(fed.at).map(|one| &mut one.now),
        };
        if let Some(fresh) = fresh {
            fresh.set(page, value);
        }
    }

    /// Notes that a page has a GPU.
    pub fn saw_gpu(&mut self, at: u32, page: u64, now: Time, says_up: bool) {
        if let Some(gpu) = self.gpus.get_mut(at) {
            gpu.page = page;
            gpu.seen = now;
            if says_up {
                gpu.up_page = page;
            }
        }
    }

    /// Forgets everything but the GPUs that `keep` wants.
    pub fn purge(&mut self, keep: impl Fn(&Gpu) -> bool) {
        let gpus = std::mem::take(self).gpus;
        for gpu in gpus.items.into_iter().filter(keep) {
            self.gpus.find(gpu.key.clone(), |_| gpu);
        }
    }
}
