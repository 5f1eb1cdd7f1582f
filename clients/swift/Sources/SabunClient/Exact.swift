// Exact numbers: natural numbers of any length, rationals, e^x from below, doubles as the ratios they are.
import Foundation

/// A natural number: 32-bit digits, the lowest first, none of the highest zero.
struct Natural: Comparable {
    private(set) var digits: [UInt32]

    init(_ small: UInt64 = 0) { self.init(digits: [UInt32(truncatingIfNeeded: small), UInt32(small >> 32)]) }

    init(digits: [UInt32]) {
        self.digits = digits
        while self.digits.last == 0 { self.digits.removeLast() }
    }

    init?(decimal: Substring) {
        guard !decimal.isEmpty else { return nil }
        var found = Natural()
        for letter in decimal {
            guard let digit = letter.wholeNumberValue, letter.isASCII else { return nil }
            found = found * Natural(10) + Natural(UInt64(digit))
        }
        self = found
    }

    var isZero: Bool { digits.isEmpty }
    var bitLength: Int { digits.isEmpty ? 0 : 32 * digits.count - digits.last!.leadingZeroBitCount }
    /// The lowest 64 bits.
    var low: UInt64 { UInt64(digits.first ?? 0) | (UInt64(digits.count > 1 ? digits[1] : 0) << 32) }
    func bit(_ place: Int) -> Bool { place / 32 < digits.count && ((digits[place / 32] >> UInt32(place % 32)) & 1) == 1 }

    static func < (a: Natural, b: Natural) -> Bool {
        if a.digits.count != b.digits.count { return a.digits.count < b.digits.count }
        for place in a.digits.indices.reversed() where a.digits[place] != b.digits[place] {
            return a.digits[place] < b.digits[place]
        }
        return false
    }

    static func + (a: Natural, b: Natural) -> Natural {
        var (sum, carry) = ([UInt32](), UInt64(0))
        for place in 0..<max(a.digits.count, b.digits.count) {
            carry += UInt64(place < a.digits.count ? a.digits[place] : 0) + UInt64(place < b.digits.count ? b.digits[place] : 0)
            sum.append(UInt32(truncatingIfNeeded: carry))
            carry >>= 32
        }
        return Natural(digits: sum + [UInt32(carry)])
    }

    /// a - b, for a >= b.
    static func - (a: Natural, b: Natural) -> Natural {
        precondition(a >= b, "a difference must not be negative")
        var (rest, borrow) = ([UInt32](), Int64(0))
        for place in a.digits.indices {
            let digit = Int64(a.digits[place]) - Int64(place < b.digits.count ? b.digits[place] : 0) - borrow
            borrow = digit < 0 ? 1 : 0
            rest.append(UInt32(truncatingIfNeeded: digit))
        }
        return Natural(digits: rest)
    }

    static func * (a: Natural, b: Natural) -> Natural {
        guard !a.isZero, !b.isZero else { return Natural() }
        var product = [UInt32](repeating: 0, count: a.digits.count + b.digits.count)
        for (i, x) in a.digits.enumerated() {
            var carry = UInt64(0)
            for (j, y) in b.digits.enumerated() {
                carry += UInt64(product[i + j]) + UInt64(x) * UInt64(y)
                product[i + j] = UInt32(truncatingIfNeeded: carry)
                carry >>= 32
            }
            product[i + b.digits.count] = UInt32(carry)
        }
        return Natural(digits: product)
    }

    static func << (a: Natural, places: Int) -> Natural {
        guard !a.isZero else { return a }
        var (shifted, carry) = ([UInt32](repeating: 0, count: places / 32), UInt64(0))
        for digit in a.digits {
            carry |= UInt64(digit) << UInt64(places % 32)
            shifted.append(UInt32(truncatingIfNeeded: carry))
            carry >>= 32
        }
        return Natural(digits: shifted + [UInt32(carry)])
    }

    static func >> (a: Natural, places: Int) -> Natural {
        guard places / 32 < a.digits.count else { return Natural() }
        let kept = Array(a.digits[(places / 32)...])
        let shifted = kept.indices.map { place -> UInt32 in
            let above = place + 1 < kept.count ? UInt64(kept[place + 1]) << 32 : 0
            return UInt32(truncatingIfNeeded: (above | UInt64(kept[place])) >> UInt64(places % 32))
        }
        return Natural(digits: shifted)
    }

    /// Quotient and remainder, bit by bit: a few divisions per study.
    func divided(by other: Natural) -> (quotient: Natural, remainder: Natural) {
        precondition(!other.isZero, "a division must not be by zero")
        var quotient = [UInt32](repeating: 0, count: digits.count)
        var rest = Natural()
        for place in (0..<bitLength).reversed() {
            rest = rest << 1
            if bit(place) { rest = rest + Natural(1) }
            if rest >= other {
                rest = rest - other
                quotient[place / 32] |= 1 << UInt32(place % 32)
            }
        }
        return (Natural(digits: quotient), rest)
    }

    /// Divided by a small number.
    func divided(by small: UInt32) -> Natural {
        var (quotient, rest) = (digits, UInt64(0))
        for place in digits.indices.reversed() {
            rest = (rest << 32) | UInt64(digits[place])
            quotient[place] = UInt32(rest / UInt64(small))
            rest %= UInt64(small)
        }
        return Natural(digits: quotient)
    }
}

/// A rational; not always in lowest terms.
struct Ratio: Comparable {
    var negative = false
    var n: Natural
    var d = Natural(1)

    init(_ n: Natural, _ d: Natural = Natural(1), negative: Bool = false) {
        self.n = n
        self.d = d
        self.negative = negative && !n.isZero
    }

    init(_ whole: Int) { self.init(Natural(UInt64(whole))) }

    /// Reads a decimal (`-1.25`) or a ratio (`1/3`), as studies write them.
    init?(text: String) {
        let minus = text.hasPrefix("-")
        let plain = minus ? text.dropFirst() : Substring(text)
        guard text.count <= 4000 else { return nil }
        let halves = plain.split(separator: "/", omittingEmptySubsequences: false)
        if halves.count == 2, let n = Natural(decimal: halves[0]), let d = Natural(decimal: halves[1]), !d.isZero {
            self.init(n, d, negative: minus)
            return
        }
        let parts = plain.split(separator: ".", omittingEmptySubsequences: false)
        guard halves.count == 1, parts.count <= 2, let whole = Natural(decimal: parts[0]) else { return nil }
        guard parts.count == 2 else {
            self.init(whole, negative: minus)
            return
        }
        guard let rest = Natural(decimal: parts[1]) else { return nil }
        let scale = (0..<parts[1].count).reduce(Natural(1)) { power, _ in power * Natural(10) }
        self.init(whole * scale + rest, scale, negative: minus)
    }

    /// A finite double as the ratio it is.
    init(_ double: Double) {
        let bits = double.bitPattern
        let exponent = Int((bits >> 52) & 0x7ff)
        let fraction = bits & ((1 << 52) - 1)
        let digits = Natural(exponent == 0 ? fraction : fraction | (1 << 52))
        let power = max(exponent, 1) - 1075
        self.init(power >= 0 ? digits << power : digits, power >= 0 ? Natural(1) : Natural(1) << -power, negative: bits >> 63 == 1)
    }

    static func == (a: Ratio, b: Ratio) -> Bool { !(a < b) && !(b < a) }

    static func < (a: Ratio, b: Ratio) -> Bool {
        if a.negative != b.negative { return a.negative }
        return a.negative ? b.n * a.d < a.n * b.d : a.n * b.d < b.n * a.d
    }

    static prefix func - (a: Ratio) -> Ratio { Ratio(a.n, a.d, negative: !a.negative) }

    static func + (a: Ratio, b: Ratio) -> Ratio {
        let (x, y, d) = (a.n * b.d, b.n * a.d, a.d * b.d)
        if a.negative == b.negative { return Ratio(x + y, d, negative: a.negative) }
        return x >= y ? Ratio(x - y, d, negative: a.negative) : Ratio(y - x, d, negative: b.negative)
    }

    static func - (a: Ratio, b: Ratio) -> Ratio { a + -b }
    static func * (a: Ratio, b: Ratio) -> Ratio { Ratio(a.n * b.n, a.d * b.d, negative: a.negative != b.negative) }
    static func / (a: Ratio, b: Ratio) -> Ratio { Ratio(a.n * b.d, a.d * b.n, negative: a.negative != b.negative) }

    /// The largest natural number not above, for a ratio that is not negative.
    var floor: Natural { n.divided(by: d).quotient }
    var ceil: Natural {
        let (quotient, remainder) = n.divided(by: d)
        return remainder.isZero ? quotient : quotient + Natural(1)
    }

    /// The nearest double, ties to even.
    var double: Double {
        guard !n.isZero else { return 0 }
        let shift = 55 - (n.bitLength - d.bitLength)
        let (quotient, left) = (shift >= 0 ? n << shift : n).divided(by: shift >= 0 ? d : d << -shift)
        let cut = max(quotient.bitLength - 53, shift - 1074)
        let half = Natural(1) << (cut - 1)
        var kept = quotient >> cut
        let rest = quotient - (kept << cut)
        if rest > half || (rest == half && (!left.isZero || kept.bit(0))) { kept = kept + Natural(1) }
        let size = scalbn(Double(kept.low), cut - shift)
        return negative ? -size : size
    }
}

/// A rational not above exp(value), for value >= 0: every step is cut off.
func expDown(_ value: Ratio) -> Ratio {
    let fraction = 512
    let small = (value.n << fraction).divided(by: value.d).quotient >> 16
    var (sum, term, i) = (Natural(), Natural(1) << fraction, UInt32(1))
    while !term.isZero {
        sum = sum + term
        term = ((term * small) >> fraction).divided(by: i)
        i += 1
    }
    for _ in 0..<16 { sum = (sum * sum) >> fraction }
    return Ratio(sum, Natural(1) << fraction)
}
