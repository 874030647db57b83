// SPDX-License-Identifier: Apache-2.0
//! With RRFP_RPATH in the environment, tests and examples find the library that rrfp-sys found.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if let Ok(folder) = std::env::var("DEP_RRFP_RPATH") {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
    }
}
