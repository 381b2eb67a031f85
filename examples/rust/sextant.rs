//! A safe wrapper of a Conformer's relative attention. Slices are borrowed for as long as the
//! library may read or write them, and their lengths are checked, so that no call leaves them.

use crate::sys;
use std::ffi::CStr;
use std::{fmt, mem, ptr};

/// The library's message: which member is wrong, what is expected, and what was given.
#[derive(Debug)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for Error {}

pub type Result<T> = std::result::Result<T, Error>;

fn check(status: std::os::raw::c_int) -> Result<()> {
    if status == 0 {
        return Ok(());
    }
    // SAFETY: the message is of this thread, and stays until its next call that fails.
    let message = unsafe { CStr::from_ptr(sys::sextant_error()) };
    Err(Error(message.to_string_lossy().into_owned()))
}

pub fn version() -> String {
    // SAFETY: the library returns a constant.
    unsafe { CStr::from_ptr(sys::sextant_version()) }.to_string_lossy().into_owned()
}

/// [heads, rows, columns], one after the other.
#[derive(Clone, Copy)]
pub struct Shape {
    pub heads: usize,
    pub rows: usize,
    pub columns: usize,
}

impl Shape {
    fn array(self, data: *const f32, count: usize, name: &str) -> Result<sys::Array> {
        let Shape { heads, rows, columns } = self;
        let product = heads.checked_mul(rows).and_then(|n| n.checked_mul(columns));
        if product != Some(count) {
            return Err(Error(format!(
                "{}: expected {} x {} x {} numbers, but got {}",
                name, heads, rows, columns, count
            )));
        }
        let (heads, rows, columns) = (heads as i64, rows as i64, columns as i64);
        Ok(sys::Array {
            data: data as *mut _,
            sizes: [1, heads, rows, columns],
            strides: [heads * rows * columns, rows * columns, columns, 1],
            dtype: sys::FLOAT32,
        })
    }
}

/// The parameters of a layer. `r` has a row for each distance, T - 1 down to -(T - 1).
pub struct Positions<'a> {
    pub u: &'a [f32],
    pub v: &'a [f32],
    pub r: &'a [f32],
}

/// A layer's attention, prepared: q has u added, and the bias by distance is computed. Threads of
/// the caller compute it together.
pub struct Conformer<'a> {
    plan: *mut sys::Plan,
    attention: sys::Attention,
    // Boxed, as `attention` points to it.
    _terms: Box<sys::Terms>,
    _bias: Vec<f32>,
    out: sys::Array,
    // The slices, of which `q` and `out` are written.
    _borrowed: std::marker::PhantomData<(&'a mut [f32], &'a [f32])>,
}

// SAFETY: shares of one call may come from several threads; the library synchronises them.
unsafe impl Sync for Conformer<'_> {}

impl<'a> Conformer<'a> {
    pub fn new(
        shape: Shape,
        q: &'a mut [f32],
        k: &'a [f32],
        v: &'a [f32],
        positions: &Positions<'a>,
        out: &'a mut [f32],
    ) -> Result<Self> {
        let of_heads = Shape { rows: 1, ..shape };
        of_heads.array(ptr::null(), positions.u.len(), "u")?;
        of_heads.array(ptr::null(), positions.v.len(), "v")?;
        let distances = (2 * shape.rows).saturating_sub(1);
        let table = Shape { rows: distances, ..shape };
        let r = table.array(positions.r.as_ptr(), positions.r.len(), "r")?;
        let mut bias = vec![0.0; shape.heads * distances];
        // SAFETY: all members are numbers and pointers, for which zero means absent.
        let mut terms: Box<sys::Terms> = Box::new(unsafe { mem::zeroed() });
        let mut attention: sys::Attention = unsafe { mem::zeroed() };
        terms.size = mem::size_of::<sys::Terms>();
        attention.size = mem::size_of::<sys::Attention>();
        attention.q = shape.array(q.as_mut_ptr(), q.len(), "q")?;
        attention.k = shape.array(k.as_ptr(), k.len(), "k")?;
        attention.v = shape.array(v.as_ptr(), v.len(), "v")?;
        attention.sees = sys::ALL_KEYS;
        attention.terms = &*terms;
        let out = shape.array(out.as_mut_ptr(), out.len(), "out")?;
        let mut plan = ptr::null_mut();
        // SAFETY: all arrays have the sizes that were checked above.
        unsafe {
            check(sys::sextant_conformer_terms(
                positions.u.as_ptr(),
                positions.v.as_ptr(),
                &r,
                0.0,
                &attention.q,
                bias.as_mut_ptr(),
                &mut *terms,
            ))?;
            check(sys::sextant_plan_create(&attention, ptr::null(), &mut plan))?;
        }
        let _borrowed = std::marker::PhantomData;
        Ok(Conformer { plan, attention, _terms: terms, _bias: bias, out, _borrowed })
    }

    /// The share of thread `ith` of `nth`: each of them makes this call, once.
    pub fn attend(&self, ith: i32, nth: i32) -> Result<()> {
        // SAFETY: what the call reads and writes is borrowed by self.
        check(unsafe {
            let out = &self.out;
            sys::sextant_plan_attend_share(
                self.plan, &self.attention, out, ptr::null(), ith, nth)
        })
    }
}

impl Drop for Conformer<'_> {
    fn drop(&mut self) {
        // SAFETY: the plan was created by new(), and nothing else destroys it.
        unsafe { sys::sextant_plan_destroy(self.plan) }
    }
}
