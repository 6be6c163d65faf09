//! Vectors and matrices of three dimensions: what geometry needs of them.
//!
//! The order of operations is fixed, because results in files must be reproducible to the last bit.

/// `a - b`.
#[inline]
pub fn minus(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|axis| a[axis] - b[axis])
}

/// `a · b`.
#[inline]
pub fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// `a × b`.
#[inline]
pub fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// `a · (b × c)`: positive if the turn from `b` to `c` is counterclockwise as seen from the end of `a`.
#[inline]
pub fn triple(a: [f64; 3], b: [f64; 3], c: [f64; 3]) -> f64 {
    dot(a, cross(b, c))
}

/// `|a - b|²`.
#[inline]
pub fn squared_distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    let between = minus(a, b);
    dot(between, between)
}

/// `|a - b|`.
#[inline]
pub fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    squared_distance(a, b).sqrt()
}

/// Adds `a bᵀ` to a matrix.
#[inline]
pub fn add_product(sum: &mut [[f64; 3]; 3], a: [f64; 3], b: [f64; 3]) {
    for (row, a) in sum.iter_mut().zip(a) {
        row.iter_mut().zip(b).for_each(|(entry, b)| *entry += a * b);
    }
}

/// Returns the mean of points; zeros without points.
pub fn centre(points: &[[f64; 3]]) -> [f64; 3] {
    let n = points.len().max(1) as f64;
    std::array::from_fn(|axis| points.iter().map(|p| p[axis]).sum::<f64>() / n)
}

/// Returns the points relative to their mean.
pub fn centred(points: &[[f64; 3]]) -> Vec<[f64; 3]> {
    let centre = centre(points);
    points.iter().map(|point| minus(*point, centre)).collect()
}
