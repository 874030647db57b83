// SPDX-License-Identifier: Apache-2.0
//! Finds librrfp with the program `pkg-config` ($PKG_CONFIG names another, as for cross builds).
//!
//! No rpath is set: a distribution's library lies where the loader looks, and for one that does
//! not, the person who runs the program decides ($LD_LIBRARY_PATH). For work on this repository,
//! RRFP_RPATH=1 in the environment of cargo makes tests and examples remember the folder.

use std::env;
use std::process::{exit, Command};

/// The release whose functions are declared here.
const VERSION_MIN: &str = "0.1.0";

fn fail(what: &str) -> ! {
    eprintln!("rrfp-sys: {what}");
    eprintln!("rrfp-sys: install rrfp, or let PKG_CONFIG_PATH name the folder of its rrfp.pc");
    exit(1);
}

fn pkg_config(arguments: &[&str]) -> String {
    let program = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".to_string());
    let output = match Command::new(&program).args(arguments).output() {
        Ok(output) => output,
        Err(error) => fail(&format!("cannot run {program}: {error}")),
    };
    if !output.status.success() {
        fail(String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for name in [
        "PKG_CONFIG",
        "PKG_CONFIG_PATH",
        "PKG_CONFIG_LIBDIR",
        "PKG_CONFIG_SYSROOT_DIR",
    ] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rerun-if-env-changed=RRFP_RPATH");

    let wanted = format!("rrfp >= {VERSION_MIN}");
    pkg_config(&["--print-errors", "--exists", &wanted]);
    let libs = pkg_config(&["--libs", "rrfp"]);
    for word in libs.split_whitespace() {
        if let Some(folder) = word.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={folder}");
        } else if let Some(library) = word.strip_prefix("-l") {
            println!("cargo:rustc-link-lib={library}");
        }
    }

    if env::var_os("RRFP_RPATH").is_some() {
        let folder = pkg_config(&["--variable=libdir", "rrfp"]);
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder.trim());
        // DEP_RRFP_RPATH of crates that depend on this one.
        println!("cargo:rpath={}", folder.trim());
    }
}
