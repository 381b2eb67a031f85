//! A Conformer's relative attention on two threads, beside the equation in float64.
mod sextant;
mod sys;

use sextant::{Conformer, Positions, Shape};

fn numbers(count: usize, step: f32) -> Vec<f32> {
    (0..count).map(|n| (step * n as f32).sin()).collect()
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
}

fn sum(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(x, y)| x + y).collect()
}

fn main() -> sextant::Result<()> {
    let shape = Shape { heads: 2, rows: 50, columns: 16 };
    let Shape { heads, rows, columns } = shape;
    let count = heads * rows * columns;
    let (q, k, v) = (numbers(count, 0.37), numbers(count, 0.11), numbers(count, 0.23));
    let (u, w) = (numbers(heads * columns, 0.5), numbers(heads * columns, 0.7));
    let r = numbers(heads * (2 * rows - 1) * columns, 0.19);
    let mut out = vec![0.0; count];
    let mut with_u = q.clone();
    {
        let positions = Positions { u: &u, v: &w, r: &r };
        let layer = Conformer::new(shape, &mut with_u, &k, &v, &positions, &mut out)?;
        let layer = &layer;
        let done = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..2).map(|ith| scope.spawn(move || layer.attend(ith, 2))).collect();
            threads.into_iter().map(|t| t.join().expect("a thread")).collect::<Vec<_>>()
        });
        done.into_iter().collect::<sextant::Result<()>>()?;
    }

    let row = |x: &'_ [f32], head: usize, of_head: usize, n: usize| -> Vec<f32> {
        let at = (head * of_head + n) * columns;
        x[at..at + columns].to_vec()
    };
    let mut worst: f64 = 0.0;
    for head in 0..heads {
        let (of_u, of_w) = (row(&u, head, 1, 0), row(&w, head, 1, 0));
        for i in 0..rows {
            let query = row(&q, head, rows, i);
            let scores: Vec<f64> = (0..rows)
                .map(|j| {
                    let of_distance = row(&r, head, 2 * rows - 1, rows - 1 + j - i);
                    let content = dot(&sum(&query, &of_u), &row(&k, head, rows, j));
                    let position = dot(&sum(&query, &of_w), &of_distance);
                    ((content + position) / (columns as f64).sqrt()).exp()
                })
                .collect();
            let total: f64 = scores.iter().sum();
            for c in 0..columns {
                let expected: f64 = (0..rows)
                    .map(|j| scores[j] / total * f64::from(v[(head * rows + j) * columns + c]))
                    .sum();
                let got = f64::from(out[(head * rows + i) * columns + c]);
                worst = worst.max((got - expected).abs());
            }
        }
    }
    println!("sextant {}: {} frames, largest difference {:.1e}", sextant::version(), rows, worst);
    assert!(worst < 1e-5);

    let positions = Positions { u: &u, v: &w, r: &r[1..] };
    let mut short = q.clone();
    let refused = Conformer::new(shape, &mut short, &k, &v, &positions, &mut out);
    println!("{}", refused.err().expect("an error"));
    Ok(())
}
