//! The part of `sextant/sextant.h` that the example uses, by hand. bindgen makes the rest of it:
//! `bindgen PREFIX/include/sextant/sextant.h -- -IPREFIX/include`.
#![allow(dead_code)]

use std::os::raw::{c_char, c_int, c_void};

pub const ALL_KEYS: c_int = 1;
pub const FLOAT32: c_int = 0;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Array {
    pub data: *mut c_void,
    pub sizes: [i64; 4],   // batch, heads, rows, columns
    pub strides: [i64; 4], // in elements
    pub dtype: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Table {
    pub table: Array,
    pub rows: *const i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Axis {
    pub query_positions: *const i64,
    pub key_positions: *const i64,
    pub query_batch_stride: i64,
    pub key_batch_stride: i64,
    pub farthest: i64,
    pub distances: i64,
    pub bias_rows: *const i32,
    pub on_query_rows: *const i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Terms {
    pub size: usize,
    pub weight: Table,
    pub bias: Table,
    pub on_query: Table,
    pub on_key: Table,
    pub on_value: Table,
    pub query_bias: Array,
    pub key_bias: Array,
    pub mask: *const u8,
    pub mask_strides: [i64; 4],
    pub softcap: f64,
    pub sink: *const f32,
    pub axes: *const Axis,
    pub axis_count: i64,
    pub axis_bias: Array,
    pub axis_on_query: Array,
    pub table_query: Array,
    pub query_sink: Array,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Attention {
    pub size: usize,
    pub q: Array,
    pub k: Array,
    pub v: Array,
    pub scale: f64,
    pub first_query: *const i64,
    pub sees: c_int,
    pub window: i64,
    pub left: i64,
    pub right: i64,
    pub lengths: *const i64,
    pub sequences: i64,
    pub query_lengths: *const i64,
    pub key_lengths: *const i64,
    pub rope: *const c_void,
    pub terms: *const Terms,
    pub layout: *const c_void,
    pub threads: c_int,
}

#[repr(C)]
pub struct Plan {
    _private: [u8; 0],
}

extern "C" {
    pub fn sextant_error() -> *const c_char;
    pub fn sextant_version() -> *const c_char;
    pub fn sextant_conformer_terms(
        u: *const f32,
        v: *const f32,
        r: *const Array,
        scale: f64,
        q: *const Array,
        bias: *mut f32,
        terms: *mut Terms,
    ) -> c_int;
    pub fn sextant_plan_create(
        attention: *const Attention,
        backend: *const c_char,
        plan: *mut *mut Plan,
    ) -> c_int;
    pub fn sextant_plan_destroy(plan: *mut Plan);
    pub fn sextant_plan_attend_share(
        plan: *mut Plan,
        attention: *const Attention,
        out: *const Array,
        lse: *const Array,
        ith: c_int,
        nth: c_int,
    ) -> c_int;
}
