//! Parameters of the kernels for products, and the constraints on these parameters.

use lapidary_core::{DType, Limits};

/// A parameter of a kernel as a number in a text.
pub trait Number: Sized {
    /// Returns the parameter as a number.
    fn number(self) -> usize;
    /// Returns the parameter with this number. `None` if there is no such value.
    fn of(number: usize) -> Option<Self>;
}

impl Number for usize {
    fn number(self) -> usize {
        self
    }

    fn of(number: usize) -> Option<Self> {
        Some(number)
    }
}

/// A flag is 1 if it is set and 0 if not.
impl Number for bool {
    fn number(self) -> usize {
        usize::from(self)
    }

    fn of(number: usize) -> Option<Self> {
        (number <= 1).then_some(number == 1)
    }
}

/// Declares the parameters of a kernel as a struct whose fields have names and numbers in texts. A parameter that is declared with a
/// number, such as `pub images: bool = 0`, has this number if a text does not name it. Texts that were written before the parameter
/// existed thus stay valid.
macro_rules! parameters {
    ($(#[$about:meta])* pub struct $name:ident { $($(#[$doc:meta])* pub $field:ident: $type:ty $(= $default:literal)?,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name { $($(#[$doc])* pub $field: $type,)* }

        impl $name {
            /// Returns the names and values of all parameters. A flag has the value 0 or 1.
            #[must_use]
            pub fn values(&self) -> Vec<(&'static str, usize)> {
                vec![$((stringify!($field), crate::params::Number::number(self.$field))),*]
            }

            /// Makes the parameters from the values that `value` returns for their names.
            ///
            /// # Errors
            /// `value` returns `None` for a parameter without a default, or a flag is neither 0 nor 1.
            pub fn from_values(mut value: impl FnMut(&str) -> Option<usize>) -> Result<Self, String> {
                Ok($name {
                    $($field: {
                        let name = stringify!($field);
                        let number = value(name)$(.or(Some($default)))?.ok_or_else(|| format!("{name} is not given"))?;
                        crate::params::Number::of(number).ok_or_else(|| format!("{name} is 0 or 1, not {number}"))?
                    },)*
                })
            }
        }
    };
}
pub(crate) use parameters;

parameters! {
/// Parameters of a product by tiles in local memory. A work-group computes a tile of `mwg` × `nwg` elements of C. Each work-item
/// computes `mr` × `nr` elements of the tile. A and B pass through local memory in slices of `kwg` terms along k. Work-items read
/// rows from a slice in vectors of `vwm` elements. Local memory holds `stages` slices of each factor at once.
pub struct TileParams {
    /// Number of rows of C per work-group.
    pub mwg: usize,
    /// Number of columns of C per work-group.
    pub nwg: usize,
    /// Number of terms (extent along k) in a slice.
    pub kwg: usize,
    /// Number of rows of C per work-item.
    pub mr: usize,
    /// Number of columns of C per work-item.
    pub nr: usize,
    /// Number of rows in a vector: 1 for scalars, otherwise a vector length of the language.
    pub vwm: usize,
    /// Number of slices of each factor in local memory. With 2 slices, a work-group fills one while it uses the other.
    pub stages: usize,
}
}

impl TileParams {
    /// Returns the number of work-items in a work-group.
    #[must_use]
    pub fn items(&self) -> usize {
        self.local().iter().product()
    }

    /// Returns the number of work-items in a work-group, in each dimension.
    #[must_use]
    pub fn local(&self) -> [usize; 2] {
        [self.mwg / self.mr, self.nwg / self.nr]
    }

    /// Returns the bytes of local memory that a work-group uses.
    #[must_use]
    pub fn local_bytes(&self, dtype: DType) -> usize {
        self.stages * self.kwg * (self.mwg + self.vwm + self.nwg + 1) * dtype.size()
    }

    /// Checks that the kernel can be compiled and run.
    ///
    /// # Errors
    /// A parameter violates a constraint, which the error states with its reason.
    pub fn check(&self, dtype: DType, limits: &Limits) -> Result<(), String> {
        let TileParams { mwg, nwg, kwg, mr, nr, vwm, stages } = *self;
        if [mwg, nwg, kwg, mr, nr, vwm].contains(&0) {
            return Err("every extent is at least 1".to_owned());
        }
        let rules = [
            (mwg % mr == 0 && nwg % nr == 0, "mr divides mwg and nr divides nwg: work-items share the tile equally"),
            (
                (mwg * kwg) % self.items().max(1) == 0 && (nwg * kwg) % self.items().max(1) == 0,
                "the work-items divide mwg·kwg and nwg·kwg: they fetch a slice in equal parts",
            ),
            (
                [1, 2, 4, 8].contains(&vwm) && mr % vwm == 0,
                "vwm is 1 or a length of vectors and divides mr: rows are read in vectors",
            ),
            ([1, 2].contains(&stages), "stages is 1 or 2: there is one slice to use and one to fill"),
            (self.items() <= limits.work_group, "(mwg/mr)·(nwg/nr) work-items fit a work-group of the device"),
            (self.local_bytes(dtype) <= limits.local_memory, "the slices of A and B fit local memory"),
        ];
        rules.iter().find(|(met, _)| !met).map_or(Ok(()), |(_, reason)| Err((*reason).to_owned()))
    }
}

parameters! {
/// Parameters of a product of operands that are stored in whole vectors of 16 bytes. The kernel text unrolls the loop over a
/// slice, for devices whose compilers keep many values in registers. Every 32 consecutive work-items form a strip: `lanes_n`
/// work-items along the columns of C, and 32 / `lanes_n` along the rows.
pub struct VectorParams {
    /// Number of rows of C per work-group.
    pub mwg: usize,
    /// Number of columns of C per work-group.
    pub nwg: usize,
    /// Number of terms (extent along k) in a slice.
    pub kwg: usize,
    /// Number of rows of C per work-item.
    pub mr: usize,
    /// Number of columns of C per work-item.
    pub nr: usize,
    /// Number of work-items of a strip along the columns.
    pub lanes_n: usize,
    /// Whether consecutive work-items of a strip alternate between two columns of the strip, instead of following one column.
    pub zigzag: bool,
    /// Whether the kernel reads operands from local memory one step before their multiplication.
    pub ahead: bool,
    /// Whether the kernel reads A and B from images of their buffers, whose pixels have the size of a vector. A device may read images
    /// through another cache than buffers.
    pub images: bool = 0,
}
}

/// Number of work-items in a strip.
const STRIP: usize = 32;

/// Size of a vector of `gemm_vector`, and of a pixel of an image, in bytes.
pub const VECTOR_BYTES: usize = 16;

impl VectorParams {
    /// Returns the number of elements in a vector.
    #[must_use]
    pub fn vector(dtype: DType) -> usize {
        VECTOR_BYTES / dtype.size()
    }

    /// Returns the number of work-items in a work-group.
    #[must_use]
    pub fn items(&self) -> usize {
        self.mwg / self.mr * (self.nwg / self.nr)
    }

    /// Returns the bytes of local memory that a work-group uses.
    #[must_use]
    pub fn local_bytes(&self, dtype: DType) -> usize {
        2 * self.kwg * (self.mwg + self.nwg) * dtype.size()
    }

    /// Returns whether the kernel can read B as it is stored, without a transposed copy. The vectors of B lie along k. The kernel
    /// stores the elements of each vector to different lines of local memory, in a shuffled order in which few accesses meet in
    /// one bank.
    #[must_use]
    pub fn transposes_b(&self, dtype: DType) -> bool {
        let (v, items) = (Self::vector(dtype), self.items());
        let along_k = self.kwg / v;
        // the shuffle permutes eight vectors, which must lie in one strip, and the columns that a work-item loads must be a
        // multiple of eight vectors apart
        8_usize.is_multiple_of(along_k) && items.is_multiple_of(8 * v * along_k) && (self.lanes_n * self.nr).is_multiple_of(8 * v)
    }

    /// Checks that the kernel can be compiled and run.
    ///
    /// # Errors
    /// A parameter violates a constraint, which the error states with its reason.
    pub fn check(&self, dtype: DType, limits: &Limits) -> Result<(), String> {
        let VectorParams { mwg, nwg, kwg, mr, nr, lanes_n, images, .. } = *self;
        if [mwg, nwg, kwg, mr, nr, lanes_n].contains(&0) {
            return Err("every extent is at least 1".to_owned());
        }
        if lanes_n >= STRIP || mwg < Self::vector(dtype) || nwg < Self::vector(dtype) || mwg < mr || nwg < nr {
            return Err("a strip has several rows of work-items, and a tile whole vectors for each work-item".to_owned());
        }
        let (v, items) = (Self::vector(dtype), self.items());
        let lanes_m = STRIP / lanes_n;
        let rules = [
            (mr % v == 0 && nr % v == 0 && kwg % v == 0, "a vector divides mr, nr and kwg: all moves in vectors"),
            (
                lanes_n.is_power_of_two() && lanes_m * lanes_n == STRIP && lanes_m > 1,
                "lanes_n is a power of two below 32: lanes are told apart by bits",
            ),
            (
                mwg % (lanes_m * mr) == 0 && nwg % (lanes_n * nr) == 0,
                "strips of 32 work-items, lanes_n of them along the columns, cover the tile",
            ),
            (
                items % (mwg / v) == 0 && items % (nwg / v) == 0 && (mwg / v * kwg) % items == 0 && (nwg / v * kwg) % items == 0,
                "the work-items fetch whole lines of a slice in equal parts",
            ),
            (items <= limits.work_group, "(mwg/mr)·(nwg/nr) work-items fit a work-group of the device"),
            (self.local_bytes(dtype) <= limits.local_memory, "two slices of A and B fit local memory"),
            (!images || limits.image_pixels > 0, "images is zero: neither WGSL nor this device reads buffers as images"),
        ];
        rules.iter().find(|(met, _)| !met).map_or(Ok(()), |(_, reason)| Err((*reason).to_owned()))
    }
}

parameters! {
/// Parameters of a product of packed panels without barriers. Each work-item holds `nr` columns of C in registers, with `mv`
/// vectors of `vw` rows in each column.
pub struct PanelParams {
    /// Number of vectors that a work-item holds in each column of C.
    pub mv: usize,
    /// Number of elements in a vector: 2, 4, 8 or 16.
    pub vw: usize,
    /// Number of columns of C per work-item.
    pub nr: usize,
    /// Number of work-items in a work-group. A device that runs work-items in lockstep needs more than one.
    pub group: usize,
}
}

parameters! {
/// Blocks of the factors that are packed at a time for a product of packed panels. The text of the kernel does not depend on them.
pub struct PanelBlocks {
    /// Maximum number of terms (extent along k).
    pub kc: usize,
    /// Maximum number of rows of A.
    pub mc: usize,
    /// Maximum number of columns of B.
    pub nc: usize,
}
}

impl PanelBlocks {
    /// Checks that a block is not empty.
    ///
    /// # Errors
    /// An extent is zero.
    pub fn check(&self) -> Result<(), String> {
        if [self.kc, self.mc, self.nc].contains(&0) { Err("a block has at least one element".to_owned()) } else { Ok(()) }
    }
}

impl PanelParams {
    /// Returns the number of rows in a panel of A.
    #[must_use]
    pub fn mr(&self) -> usize {
        self.mv * self.vw
    }

    /// Checks that a device can compile and run the kernel within `limits`. The vector registers of the device have `vector_bits` bits, and a
    /// vector of the kernel must fit one register.
    ///
    /// # Errors
    /// A parameter violates a constraint, which the error states with its reason.
    pub fn check(&self, dtype: DType, limits: &Limits, vector_bits: usize) -> Result<(), String> {
        let rules = [
            (![self.mv, self.nr, self.group].contains(&0), "every extent is at least 1"),
            ([2, 4, 8, 16].contains(&self.vw), "vw is a vector length of OpenCL C: 2, 4, 8 or 16"),
            (self.vw == 2 || 8 * self.vw * dtype.size() <= vector_bits, "vw elements fit a vector register of the device"),
            (self.group <= limits.work_group, "the work-items fit a work-group of the device"),
        ];
        rules.iter().find(|(met, _)| !met).map_or(Ok(()), |(_, reason)| Err((*reason).to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_why() {
        let limits = crate::limits(256, 32 << 10);
        let odd = TileParams { mwg: 10, nwg: 8, kwg: 8, mr: 4, nr: 4, vwm: 1, stages: 2 };
        assert!(odd.check(DType::F32, &limits).unwrap_err().contains("divides"));
        assert!(TileParams { mr: 0, ..odd }.check(DType::F32, &limits).unwrap_err().contains("at least 1"));
        let even = TileParams { mwg: 8, ..odd };
        assert_eq!(even.check(DType::F64, &limits), Ok(()));
        assert!(even.check(DType::F64, &crate::limits(256, 8)).unwrap_err().contains("local memory"));
        let panel = PanelParams { mv: 1, vw: 8, nr: 1, group: 1 };
        assert_eq!(panel.check(DType::F64, &limits, 512), Ok(()));
        assert!(panel.check(DType::F64, &limits, 256).unwrap_err().contains("vector register"));
        assert!(PanelParams { vw: 3, ..panel }.check(DType::F64, &limits, 512).unwrap_err().contains("vector length"));
    }

    #[test]
    fn vectors_fit_the_limits_that_they_are_made_for() {
        let mut desktop = crate::limits(1024, 48 << 10);
        let narrow = VectorParams { mwg: 64, nwg: 64, kwg: 8, mr: 4, nr: 8, lanes_n: 4, zigzag: true, ahead: false, images: false };
        assert_eq!(narrow.check(DType::F64, &desktop), Ok(()));
        assert!(narrow.transposes_b(DType::F64));
        assert!(VectorParams { lanes_n: 3, ..narrow }.check(DType::F64, &desktop).unwrap_err().contains("power of two"));
        assert!(VectorParams { mwg: 72, ..narrow }.check(DType::F64, &desktop).is_err());
        let images = VectorParams { images: true, ..narrow };
        assert!(images.check(DType::F64, &desktop).unwrap_err().contains("reads buffers as images"));
        desktop.image_pixels = 1;
        assert_eq!(images.check(DType::F64, &desktop), Ok(()));
    }

    #[test]
    fn parameters_are_made_from_the_values_that_they_have() {
        let params = VectorParams { mwg: 64, nwg: 32, kwg: 8, mr: 4, nr: 8, lanes_n: 4, zigzag: true, ahead: false, images: false };
        let values = params.values();
        assert_eq!(values[..2], [("mwg", 64), ("nwg", 32)]);
        let value = |name: &str| values.iter().find(|(known, _)| *known == name).map(|&(_, value)| value);
        assert_eq!(VectorParams::from_values(value), Ok(params));
        // a text from before the parameter `images` existed
        assert_eq!(VectorParams::from_values(|name| value(name).filter(|_| name != "images")), Ok(params));
        let missing = VectorParams::from_values(|name| value(name).filter(|_| name != "ahead"));
        assert_eq!(missing.unwrap_err(), "ahead is not given");
    }
}
