pub(crate) use super::plain::read;
