//! Every instruction on the adapters of this machine.

use std::sync::Arc;

use lapidary_backend_wgpu::{WgpuDevice, list};
use lapidary_conformance::Instructions;
use lapidary_core::{DType, ProgramCache};
use lapidary_kernels::{PanelParams, Products, TileParams, VectorParams, VectorProducts};

/// Every adapter as a device, made in some way; `LAPIDARY_REQUIRE_WGPU` asks for one at least.
fn devices(make: impl Fn(WgpuDevice) -> WgpuDevice) -> Vec<(bool, WgpuDevice)> {
    let listing = list();
    let required = std::env::var_os("LAPIDARY_REQUIRE_WGPU").is_some();
    assert!(!listing.devices.is_empty() || !required, "no adapter: {:?}", listing.notes);
    let open = |index| WgpuDevice::open(index, None, Arc::new(ProgramCache::new(None))).unwrap();
    listing.devices.iter().enumerate().map(|(index, found)| (found.f64, make(open(index)))).collect()
}

#[test]
fn every_instruction() {
    for (f64, device) in devices(|device| device) {
        Instructions(&device).all::<f32>();
        if f64 {
            Instructions(&device).all::<f64>();
        }
    }
}

#[test]
fn with_workgroup_memory() {
    for (f64, device) in devices(|device| device.with_tiles().unwrap()) {
        Instructions(&device).products::<f32>();
        Instructions(&device).wide_products::<f32>();
        Instructions(&device).panels::<f32>();
        if f64 {
            Instructions(&device).products::<f64>();
            Instructions(&device).wide_products::<f64>();
            Instructions(&device).panels::<f64>();
        }
    }
}

/// Parameters that no device chooses by itself, each far from the others.
#[test]
fn with_unusual_products() {
    let tile = TileParams { mwg: 8, nwg: 4, kwg: 4, mr: 4, nr: 1, vwm: 1, stages: 1 };
    let ways = [
        Products::Tile(TileParams { vwm: 2, ..tile }),
        Products::Tile(TileParams { vwm: 4, stages: 2, ..tile }),
        Products::Panel(PanelParams { mv: 1, vw: 2, nr: 3, group: 2 }),
    ];
    for (_, device) in devices(|device| device) {
        ways.into_iter().fold(device, |device, products| {
            let device = device.with_products([products; 2]).unwrap();
            Instructions(&device).products::<f32>();
            device
        });
    }
}

/// The tile of large products in `f64`, on products that are small.
#[test]
fn with_wide_products() {
    let tile = TileParams { mwg: 8, nwg: 4, kwg: 4, mr: 4, nr: 1, vwm: 1, stages: 1 };
    let vectors = |narrow| Products::Vector(VectorProducts { wide: None, narrow, tile });
    let ways = [vectors(VectorParams::narrow(DType::F32)), vectors(VectorParams::wide(DType::F64))];
    for (f64, device) in devices(|device| device.with_tiles().unwrap()) {
        if f64 {
            Instructions(&device.with_products(ways).unwrap()).wide_products::<f64>();
        }
    }
}
