//! The order of the tuned kernels in a file, and the conditions of their entries.

use std::cmp::Reverse;

use lapidary::kernels::database::{Entry, Kernel, ProductSizes};

use super::message::Call;

/// Returns the sizes to which the entry of a tuned kernel applies: those of products that are narrow like the measured one, or all.
pub fn sizes_of(kernel: Kernel, call: &Call) -> ProductSizes {
    match kernel {
        Kernel::Product(_) => ProductSizes::like_narrow(call.sizes).unwrap_or_default(),
        Kernel::Group(..) | Kernel::Threshold(..) | Kernel::Cpu(_) | Kernel::Stop(_) => ProductSizes::default(),
    }
}

/// Sorts the entries of one type, so that those for few sizes precede those for more sizes: the narrowest products come first, and the
/// entries for all products last. Calls `restrict` for the entries that apply to the same sizes.
pub fn sort(entries: &mut [&mut Entry], restrict: impl Fn(&mut [&mut Entry])) {
    entries.sort_by_key(|entry| {
        let ProductSizes { max_side, orientation, min_terms, max_terms } = entry.sizes;
        (max_side, orientation.is_none(), orientation, Reverse(min_terms), max_terms)
    });
    entries.chunk_by_mut(|a, b| a.sizes == b.sizes).for_each(restrict);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use lapidary::kernels::{BlockParams, Database, Dialect, Product, Tuning};
    use lapidary::{DType, DeviceFacts};

    use super::*;
    use crate::tune::goal::Device;
    use crate::tune::results::{Winner, save};

    fn device() -> Device {
        let mut facts = DeviceFacts::new("opencl:0");
        facts.limits.work_group = 1024;
        facts.limits.local_memory = 48 << 10;
        facts.identity.model = "Model 5".to_owned();
        Device { facts, language: Some(Dialect::OpenClC) }
    }

    /// Saves a kernel that divides the terms into `split` parts as the fastest one for a product, and returns the text of the file.
    fn saved(folder: &Path, sizes: [usize; 3], split: usize) -> String {
        let call = Call { task: "gemm".to_owned(), is_f64: true, sizes, transposed: [false; 2], is_padded: false, seed: 1 };
        let kernel = Kernel::Product(Product::Block(BlockParams { split, ..BlockParams::PLAIN }));
        let [m, n, k] = sizes;
        let measurement = format!("m={m} n={n} k={k}");
        std::fs::read_to_string(save(folder, &device(), &Winner { call, kernel, measurement }).unwrap()).unwrap()
    }

    #[test]
    fn entries_for_narrow_products_precede_those_for_all_products() {
        let folder = tempfile::tempdir().unwrap();
        let measured = [[128; 3], [64, 64, 16_384], [2000, 8, 2000], [512; 3], [1, 2000, 2000], [500, 8, 500]];
        for (sizes, split) in measured.into_iter().zip([1, 32, 16, 2, 4, 8]) {
            saved(folder.path(), sizes, split);
        }
        let text = saved(folder.path(), [2000, 8, 2000], 16);
        let lines = text.lines().filter_map(|line| line.strip_prefix("gemm_block f64 opencl "));
        let conditions: Vec<&str> = lines.map(|line| line.split("mwg=").next().unwrap().trim()).collect();
        // a tile has 8 × 4 elements: the means are 8000 elements and 16 parts, and 65,536 elements and 2 parts
        let narrow = [
            "groups<=32000 side<=2 wide",
            "groups>=4000 groups<=128000 side<=16 tall",
            "groups<=16128 side<=16 tall",
            "groups<=65536 side<=128 terms>=8192",
        ];
        assert_eq!(conditions, [&narrow[..], &["groups>=4096 groups<=262144", "groups>=128 groups<=8192"]].concat(), "{text}");

        let mut database = Database::default();
        assert_eq!(database.add("file", &text), Vec::<String>::new());
        let tuning = Tuning::lookup(&database, &device().facts, Dialect::OpenClC);
        let split = |sizes| match tuning.products(DType::F64, sizes).next() {
            Some(Product::Block(params)) => params.split,
            other => panic!("{other:?}"),
        };
        let used = [[2, 3000, 300], [1000, 16, 2000], [990, 8, 990], [100, 128, 8192], [600; 3], [200, 128, 8191]].map(split);
        assert_eq!(used, [4, 16, 8, 32, 2, 1]);
    }
}
