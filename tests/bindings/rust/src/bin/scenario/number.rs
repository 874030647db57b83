// SPDX-License-Identifier: Apache-2.0

/// A number as C's `%g` prints it: six significant digits, no zeros at the end, an exponent where
/// it is below -4 or above 5.
pub fn g(value: f64) -> String {
    const DIGITS: i32 = 6;
    if !value.is_finite() {
        return format!("{value}").to_lowercase();
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.to_string();
    }
    let scientific = format!("{value:.*e}", DIGITS as usize - 1);
    let (mantissa, exponent) = scientific.split_once('e').expect("the format has an e");
    let exponent: i32 = exponent.parse().expect("what follows e is a number");
    if !(-4..DIGITS).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    let decimals = (DIGITS - 1 - exponent) as usize;
    trimmed(&format!("{value:.decimals$}")).to_string()
}

fn trimmed(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::g;

    #[test]
    fn as_c_prints_it() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (525.0, "525"),
            (52.5, "52.5"),
            (1234567.0, "1.23457e+06"),
            (999999.5, "1e+06"),
            (100000.0, "100000"),
            (0.0001, "0.0001"),
            (0.000012345678, "1.23457e-05"),
            (-1.0 / 3.0, "-0.333333"),
            (1e100, "1e+100"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "nan"),
        ];
        for (value, text) in cases {
            assert_eq!(g(value), text);
        }
    }
}
