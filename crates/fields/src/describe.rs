//! The description of a body, made by running its reader without one.

use super::Fields;
use super::kind::{Shape, Type};
use serde_json::Value;
use std::cell::RefCell;
use tributary_domain::vocabulary::fault::Faults;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, KnownFormat, ObjectBuilder, OneOfBuilder, Schema,
    SchemaFormat, SchemaType, Type as JsonType,
};

const DOUBLE: Option<SchemaFormat> = Some(SchemaFormat::KnownFormat(KnownFormat::Double));

/// The fields that a reader asks for, in order.
#[derive(Debug, Default)]
pub(super) struct DeclaredFields(Vec<Declaration>);

#[derive(Debug)]
struct Declaration {
    path: String,
    shape: Shape,
    need: Requirement,
}

/// Whether a field must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Requirement {
    Required,
    /// It may be absent and not null.
    Optional,
    /// It may be absent or null.
    Nullable,
}

impl DeclaredFields {
    pub(super) fn add(&mut self, path: String, shape: Shape, need: Requirement) {
        self.0.push(Declaration { path, shape, need });
    }

    /// The schema of the object whose fields' paths begin so.
    fn object(&self, begin: &str) -> ObjectBuilder {
        let mut object = ObjectBuilder::new();
        for one in &self.0 {
            let name = one.path.strip_prefix(begin);
            if let Some(name) = name.filter(|name| !name.contains('.')) {
                object = object.property(name, self.schema(one));
                if one.need == Requirement::Required {
                    object = object.required(name);
                }
            }
        }
        object
    }

    fn schema(&self, one: &Declaration) -> Schema {
        let Declaration { path, shape, need } = one;
        let is_nullable = *need == Requirement::Nullable;
        let about = Some(shape.about).filter(|about| !about.is_empty());
        let types = |of: JsonType| -> SchemaType {
            if is_nullable {
                [of, JsonType::Null].into_iter().collect()
            } else {
                of.into()
            }
        };
        let object = |object: ObjectBuilder, of| {
            let object = object.schema_type(types(of)).description(about);
            if shape.write_only {
                object.write_only(true)
            } else {
                object
            }
        };
        let list = |items: Schema| {
            let size = |size: Option<i64>| size.and_then(|size| usize::try_from(size).ok());
            ArrayBuilder::new()
                .schema_type(types(JsonType::Array))
                .items(RefOr::T(items))
                .description(about)
                .min_items(size(shape.min))
                .max_items(size(shape.max))
        };
        let text = || Schema::from(ObjectBuilder::new().schema_type(JsonType::String));
        match shape.of {
            Type::Text => object(text_of(shape, is_nullable), JsonType::String).into(),
            Type::Integer => object(integer_of(shape), JsonType::Integer).into(),
            Type::Number => object(ObjectBuilder::new().format(DOUBLE), JsonType::Number).into(),
            Type::Flag => object(ObjectBuilder::new(), JsonType::Boolean).into(),
            Type::Amount => amount(is_nullable).description(about).into(),
            Type::Texts => list(text()).into(),
            Type::TextMap => {
                let map = ObjectBuilder::new().additional_properties(Some(text()));
                object(map, JsonType::Object).into()
            }
            Type::AnyObject => {
                let any = AdditionalProperties::<Schema>::FreeForm(true);
                let map = ObjectBuilder::new().additional_properties(Some(any));
                object(map, JsonType::Object).into()
            }
            Type::AnyTexts => {
                let text = [JsonType::String, JsonType::Null];
                let text = ObjectBuilder::new().schema_type(SchemaType::from_iter(text));
                let map = ObjectBuilder::new().additional_properties(Some(text));
                object(map, JsonType::Object).into()
            }
            Type::Object => object(self.object(&format!("{path}.")), JsonType::Object).into(),
            Type::Objects => list(self.object(&format!("{path}[].")).into()).into(),
        }
    }
}

fn text_of(shape: &Shape, is_nullable: bool) -> ObjectBuilder {
    let size = |size: Option<i64>| size.and_then(|size| usize::try_from(size).ok());
    let words = shape.words.iter().map(|word| Value::from(*word));
    let null = is_nullable.then_some(Value::Null);
    let words: Vec<Value> = words.chain(null).collect();
    let format = shape.format.map(str::to_owned).map(SchemaFormat::Custom);
    ObjectBuilder::new()
        .enum_values((!shape.words.is_empty()).then_some(words))
        .min_length(size(shape.min))
        .max_length(size(shape.max))
        .pattern(shape.pattern)
        .format(format)
}

fn integer_of(shape: &Shape) -> ObjectBuilder {
    ObjectBuilder::new()
        .minimum(shape.min)
        .maximum(shape.max)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
}

/// A number, or a string with its exact digits.
fn amount(is_nullable: bool) -> OneOfBuilder {
    let digits = r"^-?[0-9]{1,12}(\.[0-9]{1,6})?$";
    let text = ObjectBuilder::new().schema_type(JsonType::String);
    let null = ObjectBuilder::new().schema_type(JsonType::Null);
    let amount = OneOfBuilder::new()
        .item(ObjectBuilder::new().schema_type(JsonType::Number))
        .item(text.pattern(Some(digits)));
    if is_nullable {
        amount.item(null)
    } else {
        amount
    }
}

/// Describes the body that a reader reads.
pub fn describe<T>(
    title: &str,
    about: &str,
    read: impl FnOnce(&mut Fields<'_>) -> T,
) -> RefOr<Schema> {
    let (declared, mut faults) = (RefCell::default(), Faults::new());
    read(&mut Fields::for_description(&declared, &mut faults));
    let object = declared.borrow().object("");
    RefOr::T(
        object
            .title(Some(title))
            .description(Some(about.trim()))
            .into(),
    )
}

/// Names the description of a body, so that an operation can refer to it: what it is, and the function that reads it.
#[macro_export]
macro_rules! described_body {
    ($(#[doc = $about:literal])+ $visibility:vis $name:ident($title:literal) = $read:expr) => {
        $(#[doc = $about])+
        $visibility struct $name;

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                $crate::describe($title, concat!($($about),+), $read)
            }
        }

        impl utoipa::ToSchema for $name {}
    };
}
