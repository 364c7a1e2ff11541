//! A page like the one before costs no allocation for each sample.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use watchfire_collector::exposition::{Format, Options, parse};
use watchfire_collector::mapping::Mapper;
use watchfire_core::{Observation, Time};

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is handed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn page(gpus: u32) -> String {
    let line = |gpu: u32| {
        let labels =
            format!("{{gpu=\"{gpu}\",UUID=\"GPU-{gpu}\",modelName=\"NVIDIA H100 80GB HBM3\",Hostname=\"h1\"}}");
        format!("DCGM_FI_DEV_GPU_TEMP{labels} 50\nDCGM_FI_DEV_FB_USED{labels} 10\nDCGM_FI_DEV_FB_FREE{labels} 90\n")
    };
    (0..gpus).map(line).collect()
}

fn allocations(mapper: &mut Mapper, page: &str, out: &mut Vec<Observation>) -> u64 {
    out.clear();
    let before = COUNT.with(Cell::get);
    let mut pass = mapper.page(Time::EPOCH, out);
    parse(page.as_bytes(), &Options::new(Format::Text), &mut |sample| pass.take(&sample)).unwrap();
    pass.finish();
    COUNT.with(Cell::get) - before
}

#[test]
fn a_warm_page_allocates_by_metric_not_by_sample() {
    let counts = [8, 800].map(|gpus| {
        let (mut mapper, mut out) = (Mapper::new(None, Duration::from_secs(45)), Vec::new());
        let page = page(gpus);
        let cold = allocations(&mut mapper, &page, &mut out);
        let warm = allocations(&mut mapper, &page, &mut out);
        assert_eq!(out.len(), gpus as usize * 5);
        println!("{gpus} GPUs: {cold} allocations on the first page, {warm} on the second");
        warm
    });
    // The page lists each GPU's three metrics together, so the parser's notion of the last family changes often.
    assert_eq!(counts[0], counts[1], "100 times the samples cost nothing more");
    assert!(counts[0] < 20, "{counts:?}");
}
