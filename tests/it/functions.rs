//! How functions are written: closures that `let` binds, and tuples that parameters take apart. What travels together is a struct
//! with a name, and a closure of more than two lines is a function. The figures may only fall.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::architecture::{SOURCES, Source};

/// The most that a crate may have. Lower them when you have fewer.
const CEILINGS: [Ceiling; 5] = [
    Ceiling { of_crate: "core", closures_per_1000_lines: 10.8, long_closures: 17, tuple_functions: 2 },
    Ceiling { of_crate: "data", closures_per_1000_lines: 11.5, long_closures: 98, tuple_functions: 5 },
    Ceiling { of_crate: "tune", closures_per_1000_lines: 7.6, long_closures: 11, tuple_functions: 0 },
    Ceiling { of_crate: "engine", closures_per_1000_lines: 10.9, long_closures: 66, tuple_functions: 39 },
    Ceiling { of_crate: "", closures_per_1000_lines: 8.0, long_closures: 21, tuple_functions: 6 },
];

/// How many lines a closure with a name may have.
const LONGEST_NAMED_CLOSURE: usize = 2;

/// The most that one crate may have of each.
struct Ceiling {
    /// Its folder in `src`; empty for the program.
    of_crate: &'static str,
    closures_per_1000_lines: f64,
    /// Closures with a name that have more than [`LONGEST_NAMED_CLOSURE`] lines.
    long_closures: usize,
    /// Functions that take a tuple apart in a parameter.
    tuple_functions: usize,
}

#[test]
fn closures_with_names_become_fewer() {
    assert_fewer(|ceiling, shapes| {
        let closures: usize = shapes.values().map(|shape| shape.closures.len()).sum();
        let lines: usize = shapes.values().map(|shape| shape.lines).sum();
        let rate = closures as f64 * 1000.0 / lines as f64;
        let worst = worst(shapes, |shape| shape.closures.clone());
        (rate > ceiling.closures_per_1000_lines)
            .then(|| format!("{rate:.2} closures with names per 1,000 lines; the most are in {worst:#?}"))
    });
}

#[test]
fn long_closures_with_names_become_fewer() {
    assert_fewer(|ceiling, shapes| {
        let long: usize = shapes.values().map(|shape| shape.long_closures().len()).sum();
        let worst = worst(shapes, Shape::long_closures);
        (long > ceiling.long_closures).then(|| {
            format!("{long} closures with names have more than {LONGEST_NAMED_CLOSURE} lines: {worst:#?}")
        })
    });
}

#[test]
fn functions_that_take_tuples_apart_become_fewer() {
    assert_fewer(|ceiling, shapes| {
        let functions: usize = shapes.values().map(|shape| shape.tuple_functions.len()).sum();
        let worst = worst(shapes, |shape| shape.tuple_functions.clone());
        (functions > ceiling.tuple_functions)
            .then(|| format!("{functions} functions take a tuple apart in a parameter: {worst:#?}"))
    });
}

/// Fails with the problems of all crates, if there are any.
fn assert_fewer(problem: impl Fn(&Ceiling, &BTreeMap<&'static str, &'static Shape>) -> Option<String>) {
    let problems = CEILINGS.iter().filter_map(|ceiling| {
        Some(format!("{:?}: {}", ceiling.of_crate, problem(ceiling, &shapes(ceiling.of_crate))?))
    });
    let problems: Vec<String> = problems.collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The shapes of a crate's files.
fn shapes(of_crate: &str) -> BTreeMap<&'static str, &'static Shape> {
    SHAPES
        .iter()
        .filter(|(file, _)| file.of_crate == of_crate)
        .map(|(file, shape)| (&*file.path, shape))
        .collect()
}

/// All files that are not for tests alone.
static SHAPES: LazyLock<Vec<(&'static Source, Shape)>> = LazyLock::new(|| {
    let files = SOURCES.iter().filter(|file| !file.module.iter().any(|name| name == "tests"));
    files.map(|file| (file, Shape::of(&file.text))).collect()
});

/// The ten files that have the most, with the lines.
fn worst<'f>(shapes: &BTreeMap<&'f str, &Shape>, what: impl Fn(&Shape) -> Vec<Place>) -> Vec<String> {
    let mut files: Vec<(&'f str, Vec<Place>)> =
        shapes.iter().map(|(path, shape)| (*path, what(shape))).collect();
    files.sort_by_key(|(_, places)| std::cmp::Reverse(places.len()));
    let line = |place: &Place| format!("{} (line {})", place.name, place.line);
    files
        .iter()
        .filter(|(_, places)| !places.is_empty())
        .take(10)
        .map(|(path, places)| {
            format!("src/{path}: {}", places.iter().map(line).collect::<Vec<_>>().join(", "))
        })
        .collect()
}

/// Where something stands in a file.
#[derive(Clone, Debug)]
struct Place {
    name: String,
    line: usize,
    /// How many lines it has.
    lines: usize,
}

/// How the functions of a file are written, tests aside.
#[derive(Default)]
struct Shape {
    /// Lines of code, without comments and empty lines.
    lines: usize,
    /// Closures that `let` binds to a name.
    closures: Vec<Place>,
    /// Functions that take a tuple apart in a parameter.
    tuple_functions: Vec<Place>,
    /// Lines of modules of tests.
    test_lines: Vec<std::ops::RangeInclusive<usize>>,
}

impl Shape {
    fn of(text: &str) -> Self {
        let mut shape = Self::default();
        shape.visit_file(&syn::parse_file(text).unwrap());
        let is_code = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
        shape.lines = text
            .lines()
            .enumerate()
            .filter(|(n, line)| {
                is_code(line) && !shape.test_lines.iter().any(|range| range.contains(&(n + 1)))
            })
            .count();
        shape
    }

    fn long_closures(&self) -> Vec<Place> {
        self.closures.iter().filter(|closure| closure.lines > LONGEST_NAMED_CLOSURE).cloned().collect()
    }

    /// Notes a function if a parameter of it takes a tuple apart.
    fn function(&mut self, signature: &syn::Signature) {
        let takes_apart = signature.inputs.iter().any(|input| match input {
            syn::FnArg::Typed(input) => has_tuple(&input.pat),
            _ => false,
        });
        if takes_apart {
            self.tuple_functions.push(place(signature.ident.to_string(), signature.span()));
        }
    }
}

/// The place of what has this name.
fn place(name: String, span: Span) -> Place {
    let (start, end) = (span.start().line, span.end().line);
    Place { name, line: start, lines: end + 1 - start }
}

/// Whether a pattern takes a tuple apart.
fn has_tuple(pattern: &syn::Pat) -> bool {
    struct Tuples(bool);
    impl<'a> Visit<'a> for Tuples {
        fn visit_pat_tuple(&mut self, _: &'a syn::PatTuple) {
            self.0 = true;
        }
    }
    let mut tuples = Tuples(false);
    tuples.visit_pat(pattern);
    tuples.0
}

/// Whether an item is compiled for tests alone.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        _ => false,
    })
}

impl<'a> Visit<'a> for Shape {
    fn visit_item(&mut self, item: &'a syn::Item) {
        let attributes = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if is_for_tests(attributes) {
            self.test_lines.push(item.span().start().line..=item.span().end().line);
        } else {
            visit::visit_item(self, item);
        }
    }

    fn visit_signature(&mut self, signature: &'a syn::Signature) {
        self.function(signature);
        visit::visit_signature(self, signature);
    }

    fn visit_local(&mut self, local: &'a syn::Local) {
        if let Some(init) = &local.init
            && let syn::Expr::Closure(closure) = &*init.expr
        {
            let name = match &local.pat {
                syn::Pat::Ident(pattern) => pattern.ident.to_string(),
                _ => "_".to_owned(),
            };
            self.closures.push(place(name, closure.span()));
        }
        visit::visit_local(self, local);
    }
}

#[test]
fn shapes_are_found() {
    let text = r"
        /// A comment.
        fn outer((a, b): (u8, u8), [c, &(d, e)]: [u8; 2]) {
            let named = |(x, y): (u8, u8)| x + y;
            let long = move |x: u8| {
                named((x, x))
            };
            let value = list.iter().map(|x| x + 1);
        }

        impl Type {
            fn method(&self, (a, b): (u8, u8)) {}
        }

        #[cfg(test)]
        mod tests {
            fn of_tests((a, b): (u8, u8)) { let named = |x| x; }
        }
    ";
    let shape = Shape::of(text);
    let names = |places: &[Place]| places.iter().map(|place| place.name.clone()).collect::<Vec<_>>();
    assert_eq!(shape.lines, 10);
    assert_eq!(names(&shape.closures), ["named", "long"]);
    assert_eq!(names(&shape.long_closures()), ["long"]);
    assert_eq!(names(&shape.tuple_functions), ["outer", "method"]);
}
