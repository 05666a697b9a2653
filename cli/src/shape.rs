//! A call of a routine without its operands: the routine, its sizes and its flags.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use lapidary::{Diag, Op, Routine, Side, TrsmMode, Uplo, flops};

use crate::failure::{Failure, Result};
use crate::options::{panels, parse_positive, parse_whole};
use crate::residual::Triangle;

/// The size n if the command line names none.
const DEFAULT_N: usize = 1024;

/// Parser of the option value that names a routine.
fn parse_routine() -> impl TypedValueParser<Value = Routine> {
    let values = Routine::ALL.map(|routine| PossibleValue::new(routine.name()).help(routine.description().formula));
    PossibleValuesParser::new(values).map(|name| Routine::named(&name).expect("only these names are accepted"))
}

/// A call of a routine without its operands.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The routine that is called.
    pub routine: Routine,
    /// Number of rows of C (gemm), B (trsm) or A (getrf).
    pub m: usize,
    /// Number of columns of C (gemm), B (trsm) or A (getrf), or the order of A in getrs and gesv.
    pub n: usize,
    /// Inner size of a product.
    pub k: usize,
    /// Number of right-hand sides of getrs and gesv.
    pub nrhs: usize,
    /// Whether a product uses B or its transpose.
    pub op_b: Op,
    /// The flags of A: side, triangle, transposition and diagonal.
    pub a: Triangle,
    /// How a triangular solve handles the blocks on the diagonal.
    pub mode: TrsmMode,
}

impl Shape {
    /// Names and values of those sizes that the routine uses.
    pub fn sizes(&self) -> Vec<(&'static str, usize)> {
        let all = [("m", self.m), ("n", self.n), ("k", self.k), ("nrhs", self.nrhs)];
        named(self.routine.description().sizes, all)
    }

    /// Names and values of those flags that the routine uses.
    pub fn flags(&self) -> Vec<(&'static str, String)> {
        let Triangle { side, uplo, op, diag } = self.a;
        let all = [
            ("side", side.to_string()),
            ("uplo", uplo.to_string()),
            ("transa", op.to_string()),
            ("transb", self.op_b.to_string()),
            ("diag", diag.to_string()),
            ("mode", self.mode.to_string()),
        ];
        named(self.routine.description().flags, all)
    }

    /// Number of floating-point operations, as LAPACK counts them. `None` for a routine that only moves elements.
    pub fn flops(&self) -> Option<f64> {
        let Shape { m, n, k, nrhs, .. } = *self;
        Some(match self.routine {
            Routine::Gemm => flops::gemm(m, n, k),
            Routine::Trsm if self.a.side == Side::Left => flops::trsm(m, n),
            Routine::Trsm => flops::trsm(n, m),
            Routine::Getrf => flops::getrf(m, n),
            Routine::Getrs => flops::getrs(n, nrhs),
            Routine::Gesv => flops::getrf(n, n) + flops::getrs(n, nrhs),
            Routine::Laswp => return None,
        })
    }

    /// Order of the triangular matrix in a call of trsm.
    pub fn triangle_order(&self) -> usize {
        if self.a.side == Side::Left { self.m } else { self.n }
    }
}

/// The pairs of `values` whose names are in `names`.
fn named<V>(names: &[&str], values: impl IntoIterator<Item = (&'static str, V)>) -> Vec<(&'static str, V)> {
    values.into_iter().filter(|(name, _)| names.contains(name)).collect()
}

/// Options for the sizes and flags of a routine.
#[derive(Args, Debug)]
pub struct ShapeOptions {
    /// Routine (`plan` takes all but gesv; `kernel` takes gemm, trsm, getrf and laswp)
    #[arg(value_parser = parse_routine(), required = true)]
    routine: Option<Routine>,
    /// Number of rows [default: n]; `bench` and `plan --profile` also take a list of numbers for this and the other sizes
    #[arg(long, value_delimiter = ',', value_name = "M", value_parser = parse_whole)]
    m: Vec<usize>,
    /// Number of columns or order of the matrix [default: 1024]
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = parse_whole)]
    n: Vec<usize>,
    /// Inner size of a product [default: n]
    #[arg(long, value_delimiter = ',', value_name = "K", value_parser = parse_whole)]
    k: Vec<usize>,
    /// Number of right-hand sides of getrs and gesv [default: 1]
    #[arg(long, value_delimiter = ',', value_name = "NRHS", value_parser = parse_whole)]
    nrhs: Vec<usize>,
    /// Use A as it is (n) or its transpose (t), in gemm and trsm [default: n]
    #[arg(long, value_enum, ignore_case = true)]
    transa: Option<Trans>,
    /// Use B as it is (n) or its transpose (t), in gemm [default: n]
    #[arg(long, value_enum, ignore_case = true)]
    transb: Option<Trans>,
    /// Side of X on which the triangular A of trsm stands, left (l) or right (r) [default: l]
    #[arg(long, value_enum, ignore_case = true)]
    side: Option<SideFlag>,
    /// Triangle of A that trsm reads, lower (l) or upper (u) [default: l]
    #[arg(long, value_enum, ignore_case = true)]
    uplo: Option<UploFlag>,
    /// Diagonal of the A of trsm, stored (n) or all ones (u) [default: n]
    #[arg(long, value_enum, ignore_case = true)]
    diag: Option<DiagFlag>,
    /// What trsm does with the blocks on the diagonal: substitution, or products with their inverses where the device is faster with
    /// them, which have a weaker error bound [default: inverted]
    #[arg(long, value_enum, ignore_case = true)]
    mode: Option<ModeFlag>,
    /// Number of columns of a panel, in getrf and gesv [default: $LAPIDARY_NB, else chosen by the library]
    #[arg(long, value_name = "NB", value_parser = parse_positive)]
    nb: Option<usize>,
}

/// Defines a command-line option for each flag with two values.
macro_rules! flags {
    ($($name:ident -> $to:ident { $($word:ident = $variant:ident),+ })+) => {$(
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
        enum $name {
            $($word),+
        }

        impl From<$name> for $to {
            fn from(flag: $name) -> $to {
                match flag {
                    $($name::$word => $to::$variant),+
                }
            }
        }
    )+};
}

flags! {
    Trans -> Op { N = NoTrans, T = Trans }
    SideFlag -> Side { L = Left, R = Right }
    UploFlag -> Uplo { L = Lower, U = Upper }
    DiagFlag -> Diag { N = NonUnit, U = Unit }
    ModeFlag -> TrsmMode { Substitution = Substitution, Inverted = Inverted }
}

impl ShapeOptions {
    /// The routine that the command line names.
    pub fn routine(&self) -> Routine {
        self.routine.expect("the command line requires it")
    }

    /// Number of columns of a panel, from `--nb` or else from `LAPIDARY_NB`. With `None` the library chooses the number of columns.
    pub fn nb(&self) -> Result<Option<usize>> {
        panels(self.nb)
    }

    /// Whether the command line names a size n, or lists several values of another size.
    pub fn names_sizes(&self) -> bool {
        !self.n.is_empty() || [&self.m, &self.k, &self.nrhs].iter().any(|list| list.len() > 1)
    }

    /// The calls that the lists of sizes describe: call i has element i of each list as its sizes. A list of one size applies to
    /// all calls.
    pub fn shapes(&self) -> Result<Vec<Shape>> {
        self.shapes_over(if self.n.is_empty() { &[DEFAULT_N] } else { &self.n })
    }

    /// The calls that the lists of sizes describe, with the list `n` in place of the list on the command line.
    pub fn shapes_over(&self, n: &[usize]) -> Result<Vec<Shape>> {
        self.check_flags()?;
        let lists = [("m", &self.m[..]), ("n", n), ("k", &self.k), ("nrhs", &self.nrhs)];
        let (longest, count) =
            lists.iter().map(|(name, list)| (*name, list.len())).max_by_key(|(_, count)| *count).unwrap_or(("n", 1));
        if let Some((name, list)) = lists.iter().find(|(_, list)| list.len() > 1 && list.len() < count) {
            let message = format!("--{longest} lists {count} sizes, --{name} {}: give as many, or one", list.len());
            return Err(Failure::usage(message));
        }
        let shapes: Vec<Shape> = (0..count).map(|i| self.shape(n, i)).collect();
        // The function checks only the given sizes, since a default size is 0 only if it equals a given size that is 0.
        match lists.iter().find(|(_, list)| list.contains(&0)) {
            Some((name, _)) => Err(Failure::usage(format!("--{name} is 0, there is nothing to do: give 1 or more"))),
            None => Ok(shapes),
        }
    }

    /// Refuses an option for a size or flag that the routine would ignore.
    fn check_flags(&self) -> Result<()> {
        let shape = self.shape(&[DEFAULT_N], 0);
        let (sizes, flags) = (shape.sizes().into_iter(), shape.flags().into_iter());
        let panels = shape.routine.description().has_panels.then_some("nb");
        let known: Vec<&str> = sizes.map(|(name, _)| name).chain(flags.map(|(name, _)| name)).chain(panels).collect();
        let given = [
            ("m", !self.m.is_empty()),
            ("k", !self.k.is_empty()),
            ("nrhs", !self.nrhs.is_empty()),
            ("transa", self.transa.is_some()),
            ("transb", self.transb.is_some()),
            ("side", self.side.is_some()),
            ("uplo", self.uplo.is_some()),
            ("diag", self.diag.is_some()),
            ("mode", self.mode.is_some()),
            ("nb", self.nb.is_some()),
        ];
        match given.iter().find(|(name, given)| *given && !known.contains(name)) {
            Some((name, _)) => {
                let routine = self.routine().name();
                Err(Failure::usage(format!("--{name} means nothing to {routine}, which takes --{}", known.join(", --"))))
            }
            None => Ok(()),
        }
    }

    /// Call i of the lists of sizes, with the list `n` in place of the list on the command line.
    fn shape(&self, n: &[usize], i: usize) -> Shape {
        let at = |list: &[usize]| list.get(if list.len() == 1 { 0 } else { i }).copied();
        let n = at(n).unwrap_or(0);
        let triangle = Triangle {
            side: self.side.map_or(Side::Left, Into::into),
            uplo: self.uplo.map_or(Uplo::Lower, Into::into),
            op: self.transa.map_or(Op::NoTrans, Into::into),
            diag: self.diag.map_or(Diag::NonUnit, Into::into),
        };
        Shape {
            routine: self.routine(),
            m: at(&self.m).unwrap_or(n),
            n,
            k: at(&self.k).unwrap_or(n),
            nrhs: at(&self.nrhs).unwrap_or(1),
            op_b: self.transb.map_or(Op::NoTrans, Into::into),
            a: triangle,
            mode: self.mode.map_or(TrsmMode::default(), Into::into),
        }
    }
}
