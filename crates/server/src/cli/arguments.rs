//! Values as they are typed on the command line, and the domain's values that they stand for.
//!
//! The domain does not know clap, so its choices are repeated here for the help texts; the compiler sees to
//! it that each one has its counterpart.

use clap::ValueEnum;
use tributary_domain::access::person::{Email, Role};
use tributary_domain::access::{Environment, Permission};
use tributary_domain::vocabulary::fault::Problem;
use tributary_domain::vocabulary::id::KeyId;
use tributary_domain::vocabulary::text::Name;

/// [`Permission`] as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PermissionArgument {
    /// Read and write everything.
    Full,
    /// Read everything.
    #[value(alias = "read_only")]
    ReadOnly,
    /// Read analytics and stats.
    Analytics,
}

impl From<PermissionArgument> for Permission {
    fn from(typed: PermissionArgument) -> Self {
        match typed {
            PermissionArgument::Full => Self::Full,
            PermissionArgument::ReadOnly => Self::ReadOnly,
            PermissionArgument::Analytics => Self::Analytics,
        }
    }
}

/// [`Environment`] as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EnvironmentArgument {
    /// Live data.
    Live,
    /// Test data.
    Test,
}

impl From<EnvironmentArgument> for Environment {
    fn from(typed: EnvironmentArgument) -> Self {
        match typed {
            EnvironmentArgument::Live => Self::Live,
            EnvironmentArgument::Test => Self::Test,
        }
    }
}

/// [`Role`] as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RoleArgument {
    /// Everything, members included.
    Owner,
    /// Everything but members.
    Admin,
    /// Looks at everything.
    Analyst,
    /// Looks at reports.
    Viewer,
}

impl From<RoleArgument> for Role {
    fn from(typed: RoleArgument) -> Self {
        match typed {
            RoleArgument::Owner => Self::Owner,
            RoleArgument::Admin => Self::Admin,
            RoleArgument::Analyst => Self::Analyst,
            RoleArgument::Viewer => Self::Viewer,
        }
    }
}

pub(super) fn name(text: &str) -> Result<Name, String> {
    Name::parse(text).map_err(message_of)
}

pub(super) fn email(text: &str) -> Result<Email, String> {
    Email::parse(text).map_err(message_of)
}

pub(super) fn key_id(text: &str) -> Result<KeyId, String> {
    KeyId::parse(text).map_err(|_| "the id of a key begins with key_; see `admin key list`".into())
}

fn message_of(problem: Problem) -> String {
    problem.message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_of_the_domain_can_be_typed() {
        let permissions: Vec<Permission> = PermissionArgument::value_variants()
            .iter()
            .map(|typed| (*typed).into())
            .collect();
        assert_eq!(permissions, Permission::ALL);
        let roles: Vec<Role> = RoleArgument::value_variants()
            .iter()
            .map(|typed| (*typed).into())
            .collect();
        assert_eq!(roles, Role::ALL);
    }

    #[test]
    fn what_is_typed_is_what_the_domain_calls_it() {
        for typed in PermissionArgument::value_variants() {
            let value = typed.to_possible_value().unwrap();
            assert_eq!(
                Permission::parse(value.get_name()),
                Some(Permission::from(*typed))
            );
        }
        for typed in EnvironmentArgument::value_variants() {
            let value = typed.to_possible_value().unwrap();
            assert_eq!(
                Environment::parse(value.get_name()),
                Some(Environment::from(*typed))
            );
        }
        for typed in RoleArgument::value_variants() {
            let value = typed.to_possible_value().unwrap();
            assert_eq!(Role::parse(value.get_name()), Some(Role::from(*typed)));
        }
    }
}
