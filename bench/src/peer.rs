//! Peer libraries: the same routines of OpenBLAS, MKL and faer under one interface.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::lu::partial_pivoting::factor;
use faer::linalg::{matmul::matmul, triangular_solve};
use faer::traits::ComplexField;
use faer::{Accum, MatMut, MatRef, Par};
use lapidary::Scalar;
use lapidary::backend::Device;
use lapidary_backend_cpu::CpuDevice;

use crate::blas::Blas;
use crate::settings::Settings;

/// Path of OpenBLAS in Debian's package `libopenblas0-pthread`.
const OPENBLAS: &str = "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0";

/// A library with which Lapidary is compared.
pub enum Peer {
    /// A library with the Fortran interface, and its name.
    Blas(&'static str, Blas),
    /// The Rust library faer with the given number of threads.
    Faer(Par),
}

/// The peer libraries with which a benchmark compares Lapidary.
pub struct Peers {
    /// The libraries that were opened.
    pub list: Vec<Peer>,
    /// Whether the CPU kernel without a machine is timed too in small products.
    pub tile: bool,
}

impl Peers {
    /// Opens the libraries that `--peer` names. Without `--peer`, opens all libraries that are found.
    pub fn open(settings: &Settings) -> Result<Self, String> {
        let wanted = |name: &str| settings.peers.as_ref().is_none_or(|list| list.iter().any(|peer| peer == name));
        let mut list = Vec::new();
        for (name, path) in [("openblas", path("LAPIDARY_PEER_OPENBLAS", Some(OPENBLAS))), ("mkl", path("LAPIDARY_PEER_MKL", None))]
        {
            match path.map(|path| Blas::open(path.as_ref()).map_err(|error| error.to_string())) {
                Some(Ok(blas)) if wanted(name) => list.push(Peer::Blas(name, blas)),
                Some(Err(error)) if settings.peers.is_some() && wanted(name) => return Err(format!("{name}: {error}")),
                None if settings.peers.is_some() && wanted(name) => {
                    return Err(format!("LAPIDARY_PEER_{} names no library", name.to_uppercase()));
                }
                Some(Ok(_) | Err(_)) | None => {}
            }
        }
        if wanted("faer") {
            list.push(Peer::Faer(Par::rayon(threads())));
        }
        Ok(Peers { list, tile: wanted("tile") })
    }
}

fn path(variable: &str, usual: Option<&str>) -> Option<String> {
    std::env::var(variable).ok().or_else(|| usual.map(str::to_owned))
}

/// Number of threads that each library uses, which is that of the CPU device.
pub fn threads() -> usize {
    CpuDevice::whole(None).facts().compute_units.unwrap_or(1)
}

impl Peer {
    /// Name of the library in the table of times.
    pub fn name(&self) -> &'static str {
        match self {
            Peer::Blas(name, _) => name,
            Peer::Faer(_) => "faer",
        }
    }

    /// Version text that the library reports, or `unknown`.
    pub fn version(&self) -> String {
        match self {
            Peer::Blas(_, blas) => blas.version(),
            Peer::Faer(_) => faer_version().unwrap_or_else(|| "unknown".into()),
        }
    }

    /// Computes `C ← A·B`, where all three matrices are of order `n`.
    pub fn gemm<T: Scalar + ComplexField>(&self, n: usize, a: &[T], b: &[T], c: &mut [T]) {
        match self {
            Peer::Blas(_, blas) => blas.gemm(n, a, b, c),
            Peer::Faer(par) => {
                let (a, b) = (MatRef::from_column_major_slice(a, n, n), MatRef::from_column_major_slice(b, n, n));
                matmul(MatMut::from_column_major_slice_mut(c, n, n), Accum::Replace, a, b, T::ONE, *par);
            }
        }
    }

    /// Computes `B ← L⁻¹·B`, where `L` is the lower triangle of A and A is of order `n`.
    pub fn trsm<T: Scalar + ComplexField>(&self, n: usize, nrhs: usize, a: &[T], b: &mut [T]) {
        match self {
            Peer::Blas(_, blas) => blas.trsm(n, nrhs, a, b),
            Peer::Faer(par) => {
                let (a, b) = (MatRef::from_column_major_slice(a, n, n), MatMut::from_column_major_slice_mut(b, n, nrhs));
                triangular_solve::solve_lower_triangular_in_place(a, b, *par);
            }
        }
    }

    /// Factors `A = P·L·U`, where A is of order `n`.
    pub fn getrf<T: Scalar + ComplexField>(&self, n: usize, a: &mut [T], ipiv: &mut [i32]) {
        match self {
            Peer::Blas(_, blas) => blas.getrf(n, a, ipiv),
            Peer::Faer(par) => {
                let (mut forward, mut backward) = (vec![0_usize; n], vec![0_usize; n]);
                let params = faer::Spec::<factor::PartialPivLuParams, T>::default();
                let mut memory = MemBuffer::new(factor::lu_in_place_scratch::<usize, T>(n, n, *par, params));
                let (a, stack) = (MatMut::from_column_major_slice_mut(a, n, n), MemStack::new(&mut memory));
                factor::lu_in_place(a, &mut forward, &mut backward, *par, stack, params);
            }
        }
    }
}

/// The version of faer in the workspace's `Cargo.lock`.
fn faer_version() -> Option<String> {
    let lock = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock")).ok()?;
    let (_, rest) = lock.split_once("name = \"faer\"\nversion = \"")?;
    Some(rest.split('"').next()?.to_owned())
}
