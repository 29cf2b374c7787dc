//! Types. They name no table, with two exceptions.

use sqlparser::ast::{ArrayElemTypeDef, DataType, EnumMember, StructField};

use super::Walk;

impl Walk {
    pub(super) fn data_type(&mut self, data_type: &DataType) {
        match data_type {
            DataType::Table(_) | DataType::NamedTable { .. } => {
                self.not_understood(format!("the type {data_type}"));
            }
            DataType::Nested(columns) => {
                for column in columns {
                    self.column_def(column);
                }
            }
            DataType::Enum(members, _bits) => {
                for member in members {
                    match member {
                        EnumMember::Name(_) => {}
                        EnumMember::NamedValue(_, value) => self.expr(value),
                    }
                }
            }
            DataType::Array(element) => match element {
                ArrayElemTypeDef::None => {}
                ArrayElemTypeDef::AngleBracket(inner)
                | ArrayElemTypeDef::SquareBracket(inner, _)
                | ArrayElemTypeDef::Parenthesis(inner) => {
                    self.enter(|walk| walk.data_type(inner));
                }
            },
            DataType::Map(key, value) => {
                self.enter(|walk| walk.data_type(key));
                self.enter(|walk| walk.data_type(value));
            }
            DataType::Tuple(fields) | DataType::Struct(fields, _) => {
                for field in fields {
                    self.struct_field(field);
                }
            }
            DataType::Union(fields) => {
                for field in fields {
                    self.enter(|walk| walk.data_type(&field.field_type));
                }
            }
            DataType::Nullable(inner) | DataType::LowCardinality(inner) => {
                self.enter(|walk| walk.data_type(inner));
            }
            DataType::Character(_)
            | DataType::Char(_)
            | DataType::CharacterVarying(_)
            | DataType::CharVarying(_)
            | DataType::Varchar(_)
            | DataType::Nvarchar(_)
            | DataType::Uuid
            | DataType::CharacterLargeObject(_)
            | DataType::CharLargeObject(_)
            | DataType::Clob(_)
            | DataType::Binary(_)
            | DataType::Varbinary(_)
            | DataType::Blob(_)
            | DataType::TinyBlob
            | DataType::MediumBlob
            | DataType::LongBlob
            | DataType::Bytes(_)
            | DataType::Numeric(_)
            | DataType::Decimal(_)
            | DataType::DecimalUnsigned(_)
            | DataType::BigNumeric(_)
            | DataType::BigDecimal(_)
            | DataType::Dec(_)
            | DataType::DecUnsigned(_)
            | DataType::Float(_)
            | DataType::FloatUnsigned(_)
            | DataType::TinyInt(_)
            | DataType::TinyIntUnsigned(_)
            | DataType::UTinyInt
            | DataType::Int2(_)
            | DataType::Int2Unsigned(_)
            | DataType::SmallInt(_)
            | DataType::SmallIntUnsigned(_)
            | DataType::USmallInt
            | DataType::MediumInt(_)
            | DataType::MediumIntUnsigned(_)
            | DataType::Int(_)
            | DataType::Int4(_)
            | DataType::Int8(_)
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Int128
            | DataType::Int256
            | DataType::Integer(_)
            | DataType::IntUnsigned(_)
            | DataType::Int4Unsigned(_)
            | DataType::IntegerUnsigned(_)
            | DataType::HugeInt
            | DataType::UHugeInt
            | DataType::UInt8
            | DataType::UInt16
            | DataType::UInt32
            | DataType::UInt64
            | DataType::UInt128
            | DataType::UInt256
            | DataType::BigInt(_)
            | DataType::BigIntUnsigned(_)
            | DataType::UBigInt
            | DataType::Int8Unsigned(_)
            | DataType::Signed
            | DataType::SignedInteger
            | DataType::Unsigned
            | DataType::UnsignedInteger
            | DataType::Float4
            | DataType::Float32
            | DataType::Float64
            | DataType::Real
            | DataType::RealUnsigned
            | DataType::Float8
            | DataType::Double(_)
            | DataType::DoubleUnsigned(_)
            | DataType::DoublePrecision
            | DataType::DoublePrecisionUnsigned
            | DataType::Bool
            | DataType::Boolean
            | DataType::Date
            | DataType::Date32
            | DataType::Time(_, _)
            | DataType::Datetime(_)
            | DataType::Datetime64(_, _)
            | DataType::Timestamp(_, _)
            | DataType::TimestampNtz(_)
            | DataType::Interval {
                fields: _,
                precision: _,
            }
            | DataType::JSON
            | DataType::JSONB
            | DataType::Regclass
            | DataType::Text
            | DataType::TinyText
            | DataType::MediumText
            | DataType::LongText
            | DataType::String(_)
            | DataType::FixedString(_)
            | DataType::Bytea
            | DataType::Bit(_)
            | DataType::BitVarying(_)
            | DataType::VarBit(_)
            | DataType::Custom(_, _)
            | DataType::Set(_)
            | DataType::Unspecified
            | DataType::Trigger
            | DataType::AnyType
            | DataType::GeometricType(_)
            | DataType::TsVector
            | DataType::TsQuery => {}
        }
    }

    pub(super) fn struct_field(&mut self, field: &StructField) {
        let StructField {
            field_name: _,
            field_type,
            options,
        } = field;
        self.enter(|walk| walk.data_type(field_type));
        if options.is_some() {
            self.not_understood("options of a STRUCT field");
        }
    }
}
