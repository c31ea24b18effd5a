//! Schemas of the two response envelopes.
//!
//! The envelopes refer to the schema of their content. A derived schema for a generic type would
//! repeat the content in every response. `utoipa::path` expands the arguments of a generic type
//! itself, so operations refer to a type alias instead: `type LinkEnvelope = Envelope<LinkOut>`.

use crate::body::Envelope;
use crate::page::List;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

/// Schemas by name, as [`ToSchema::schemas`] collects them.
type Schemas = Vec<(String, RefOr<Schema>)>;

impl<T: ToSchema> PartialSchema for Envelope<T> {
    fn schema() -> RefOr<Schema> {
        let envelope = ObjectBuilder::new()
            .property("data", reference::<T>())
            .required("data")
            .description(Some("Response with one object."));
        RefOr::T(envelope.into())
    }
}

impl<T: ToSchema> ToSchema for Envelope<T> {
    fn schemas(schemas: &mut Schemas) {
        collect::<T>(schemas);
    }
}

impl<T: ToSchema, M: ToSchema> PartialSchema for List<T, M> {
    fn schema() -> RefOr<Schema> {
        let envelope = ObjectBuilder::new()
            .property("data", ArrayBuilder::new().items(reference::<T>()))
            .required("data")
            .property("meta", reference::<M>())
            .required("meta")
            .description(Some("Response with a page of a list."));
        RefOr::T(envelope.into())
    }
}

impl<T: ToSchema, M: ToSchema> ToSchema for List<T, M> {
    fn schemas(schemas: &mut Schemas) {
        collect::<T>(schemas);
        collect::<M>(schemas);
    }
}

fn reference<T: ToSchema>() -> Ref {
    Ref::from_schema_name(T::name())
}

fn collect<T: ToSchema>(schemas: &mut Schemas) {
    schemas.push((T::name().into_owned(), T::schema()));
    T::schemas(schemas);
}
