//! Reading a form field by field, collecting every fault on the way. What a field may hold the domain says, as it
//! does for the REST interface.

use crate::form::Form;
use std::ops::RangeInclusive;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};

/// A form that is being read.
pub(crate) struct Reading<'a> {
    form: &'a Form,
    pub(crate) faults: Faults,
}

impl<'a> Reading<'a> {
    pub(crate) const fn of(form: &'a Form) -> Self {
        Self {
            form,
            faults: Faults::new(),
        }
    }

    /// A field that must be filled in.
    pub(crate) fn required<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, Problem>,
    ) -> Option<T> {
        let text = self.form.field(name);
        self.faults.check(name, read(text.trim()))
    }

    /// A field that may be left empty: then it goes back to its default.
    pub(crate) fn change<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, Problem>,
    ) -> Change<T> {
        let text = self.form.field(name);
        match text.trim() {
            "" => Change::Reset,
            text => self.set(name, read(text)),
        }
    }

    /// A secret: left empty it stays as it is, and a box beside it removes it.
    pub(crate) fn secret<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, Problem>,
    ) -> Change<T> {
        let text = self.form.field(name);
        match text.trim() {
            "" if self.form.is_ticked(&format!("{name}.remove")) => Change::Reset,
            "" => Change::Keep,
            text => self.set(name, read(text)),
        }
    }

    fn set<T>(&mut self, name: &str, read: Result<T, Problem>) -> Change<T> {
        self.faults
            .check(name, read)
            .map_or(Change::Keep, Change::Set)
    }

    /// A box.
    pub(crate) fn tick(&self, name: &str) -> Change<bool> {
        Change::Set(self.form.is_ticked(name))
    }

    /// A whole number of a range.
    pub(crate) fn number(&mut self, name: &str, range: RangeInclusive<i64>) -> Change<i64> {
        self.change(name, |text| {
            let number = text.parse().ok().filter(|number| range.contains(number));
            number.ok_or_else(|| {
                let (start, end) = (range.start(), range.end());
                let message = format!("Must be a whole number from {start} to {end}.");
                Problem::new(FaultCode::OutOfRange, message)
            })
        })
    }

    /// One of a few words.
    pub(crate) fn choice<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Change<T> {
        self.change(name, |text| {
            parse(text).ok_or_else(|| {
                Problem::new(
                    FaultCode::UnknownValue,
                    "Must be one of the words of the list.",
                )
            })
        })
    }

    /// Lines, or words with commas between, each of which is read; none is nothing.
    pub(crate) fn list<T>(
        &mut self,
        name: &str,
        items_max: usize,
        read: impl Fn(&str) -> Result<T, Problem>,
    ) -> Change<Vec<T>> {
        self.change(name, |text| {
            let items: Vec<&str> = text
                .split(['\n', ','])
                .map(str::trim)
                .filter(|item| !item.is_empty())
                .collect();
            if items.len() > items_max {
                let message = format!("Must have at most {items_max} items.");
                return Err(Problem::new(FaultCode::TooLong, message));
            }
            items.into_iter().map(read).collect()
        })
    }

    /// Lines of `key = value`.
    pub(crate) fn pairs(&mut self, name: &str) -> Change<Vec<(String, String)>> {
        self.change(name, |text| {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            let pair = |line: &str| {
                let (key, value) = line.split_once('=').ok_or_else(|| {
                    let message = "Must be lines of a key, an equals sign and a value.";
                    Problem::new(FaultCode::InvalidFormat, message)
                })?;
                Ok((key.trim().to_owned(), value.trim().to_owned()))
            };
            lines.map(pair).collect()
        })
    }
}
