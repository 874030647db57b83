// SPDX-License-Identifier: Apache-2.0
//! Lines `key value...`; `#` begins a comment.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::str::FromStr;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The keys that have not been asked for yet.
pub struct Keys {
    path: PathBuf,
    values: BTreeMap<String, String>,
}

impl Keys {
    pub fn read(path: &str) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
        let mut values = BTreeMap::new();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let (key, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            if values
                .insert(key.to_string(), value.trim().to_string())
                .is_some()
            {
                return Err(format!("{path}: {key} is given twice").into());
            }
        }
        Ok(Self {
            path: path.into(),
            values,
        })
    }

    pub fn optional(&mut self, key: &str) -> Option<String> {
        self.values.remove(key)
    }

    pub fn text(&mut self, key: &str) -> Result<String> {
        let missing = || format!("{}: {key} is missing", self.path.display());
        Ok(self.values.remove(key).ok_or_else(missing)?)
    }

    pub fn number<T: FromStr>(&mut self, key: &str) -> Result<T> {
        let text = self.text(key)?;
        self.parse(key, &text)
    }

    pub fn numbers<T: FromStr>(&mut self, key: &str) -> Result<Vec<T>> {
        let text = self.text(key)?;
        text.split_whitespace()
            .map(|word| self.parse(key, word))
            .collect()
    }

    pub fn parse<T: FromStr>(&self, key: &str, word: &str) -> Result<T> {
        let bad = |_| {
            format!(
                "{}: {key} is {word}; expected a number",
                self.path.display()
            )
        };
        Ok(word.parse().map_err(bad)?)
    }

    /// Relative to the folder of the scenario.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path
            .parent()
            .unwrap_or_else(|| Path::new(""))
            .join(name)
    }

    /// All have been asked for.
    pub fn end(&self) -> Result<()> {
        match self.values.keys().next() {
            Some(key) => Err(format!("{}: {key} is not known", self.path.display()).into()),
            None => Ok(()),
        }
    }
}
